// The path-lock methods of the Python class.
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "python/async_locks.h"
#include "python/bind.h"

namespace ragfs::python {
namespace {

using py::arg;

int64_t timeout_ms_of(py::handle timeout_secs) {
  const double secs = seconds_of(timeout_secs, "timeout_secs");
  if (!std::isfinite(secs) || secs < 0) {
    throw_raised({"ValueError", "timeout_secs must be a finite non-negative number"});
  }
  constexpr double kMsPerSec = 1000;
  constexpr double kLongest_ms = 1e12;
  return static_cast<int64_t>(std::min(secs * kMsPerSec, kLongest_ms));
}

// The lease that a new one joins; "" for none.
std::string owner_lease_of(py::handle owner) {
  return owner.is_none() ? std::string() : owned_lease_of(owner).lease_ref;
}

Raised lock_raised(const Error& error) {
  if (error.code == ErrorCode::invalid_argument) return {"ValueError", "invalid lock request: " + error.message};
  return raised(error, "", Call::other);
}

template <typename T>
T lock_value(Result<T> result) {
  if (!result) throw_raised(lock_raised(result.error()));
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

std::vector<LockRequest> requests_of(BoundClient& self, const std::vector<std::pair<std::string, bool>>& wanted,
                                     bool for_taking = true) {
  if (wanted.empty()) throw_raised({"ValueError", "pathlock request batch must not be empty"});
  std::vector<LockRequest> requests;
  const auto ask = [&](const std::string& path, bool tree, bool taking) {
    return value(unlocked([&] { return self.client->lock_request(path, tree, taking); }));
  };
  // All names before any directory is made.
  for (const auto& [path, tree] : wanted) requests.push_back(ask(path, tree, false));
  for (const auto& [path, tree] : wanted) {
    if (for_taking) (void)ask(path, tree, true);
  }
  return requests;
}

std::vector<std::pair<std::string, bool>> batch_of(py::handle batch) {
  if (!PyList_Check(batch.ptr()) && !PyTuple_Check(batch.ptr())) {
    throw_type_error("argument 'requests': object cannot be cast as 'Sequence'");
  }
  std::vector<std::pair<std::string, bool>> wanted;
  for (const py::handle item : py::reinterpret_borrow<py::sequence>(batch)) {
    if (!PyDict_Check(item.ptr())) throw_raised({"ValueError", "pathlock request must be a dict"});
    const auto request = py::reinterpret_borrow<py::dict>(item);
    const auto text = [&](const char* key) {
      const bool given = request.contains(key) && PyUnicode_Check(request[key].ptr());
      return given ? std::string(text_of(request[key], key)) : std::string();
    };
    const std::string path = text("path");
    if (!path.starts_with('/')) {
      throw_raised({"ValueError", "pathlock request.path must be an absolute path"});
    }
    const std::string kind = text("kind");
    if (kind != "exact" && kind != "tree") {
      throw_raised({"ValueError", "pathlock request.kind must be 'exact' or 'tree'"});
    }
    wanted.emplace_back(path, kind == "tree");
  }
  return wanted;
}

py::object acquire(BoundClient& self, py::handle ctx, const std::vector<std::pair<std::string, bool>>& wanted,
                   py::handle timeout_secs, py::handle owner) {
  (void)context_of(ctx);
  const int64_t timeout_ms = timeout_ms_of(timeout_secs);
  const std::string owner_lease = owner_lease_of(owner);
  std::vector<LockRequest> requests = requests_of(self, wanted);
  Result<LeaseRef> lease;
  {
    const py::gil_scoped_release release;
    lease = self.client->locks().acquire(std::move(requests), timeout_ms, owner_lease);
  }
  return lease_dict(lock_value(std::move(lease)), true);
}

std::vector<std::pair<std::string, bool>> all_of(py::handle paths, const char* argument, bool tree) {
  std::vector<std::pair<std::string, bool>> wanted;
  for (std::string& path : texts_of(paths, argument)) wanted.emplace_back(std::move(path), tree);
  return wanted;
}

void bind_acquire(ClientClass& type) {
  const py::none none;
  for (const bool tree : {false, true}) {
    type.def(
        tree ? "pathlock_acquire_tree" : "pathlock_acquire_exact",
        [tree](BoundClient& self, py::handle ctx, py::handle path, py::handle timeout, py::handle owner) {
          return acquire(self, ctx, {{std::string(text_of(path, "path")), tree}}, timeout, owner);
        },
        arg("ctx"), arg("path"), arg("timeout_secs") = 0.0, arg("owner_lease_ref") = none);
    type.def(
        tree ? "pathlock_acquire_tree_batch" : "pathlock_acquire_exact_batch",
        [tree](BoundClient& self, py::handle ctx, py::handle paths, py::handle timeout, py::handle owner) {
          return acquire(self, ctx, all_of(paths, "paths", tree), timeout, owner);
        },
        arg("ctx"), arg("paths"), arg("timeout_secs") = 0.0, arg("owner_lease_ref") = none);
  }
  type.def(
      "pathlock_acquire_exact_tree_batch",
      [](BoundClient& self, py::handle ctx, py::handle exact, py::handle tree, py::handle timeout, py::handle owner) {
        auto wanted = all_of(exact, "exact_paths", false);
        for (auto& one : all_of(tree, "tree_paths", true)) wanted.push_back(std::move(one));
        return acquire(self, ctx, wanted, timeout, owner);
      },
      arg("ctx"), arg("exact_paths"), arg("tree_paths"), arg("timeout_secs") = 0.0, arg("owner_lease_ref") = none);
  type.def(
      "pathlock_acquire_batch",
      [](BoundClient& self, py::handle ctx, py::handle requests, py::handle timeout, py::handle owner) {
        return acquire(self, ctx, batch_of(requests), timeout, owner);
      },
      arg("ctx"), arg("requests"), arg("timeout_secs") = 0.0, arg("owner_lease_ref") = none);
  type.def(
      "pathlock_acquire_batch_async",
      [](const std::shared_ptr<BoundClient>& self, py::handle ctx, py::handle requests, py::handle timeout,
         py::handle owner) {
        (void)context_of(ctx);
        const auto wanted = batch_of(requests);
        const int64_t timeout_ms = timeout_ms_of(timeout);
        const std::string owner_lease = owner_lease_of(owner);
        return self->async_locks->acquire(self, requests_of(*self, wanted), timeout_ms, owner_lease);
      },
      arg("ctx"), arg("requests"), arg("timeout_secs") = 0.0, arg("owner_lease_ref") = none);
}

py::object as_borrowed(BoundClient& self, py::handle, py::handle owned) {
  const LeaseArgument lease = owned_lease_of(owned);
  return lease_dict(lock_value(self.client->locks().show(lease.lease_ref, lease.ownership_ref)), false);
}

py::object to_handoff(BoundClient& self, py::handle, py::handle owned) {
  const LeaseArgument argument = owned_lease_of(owned);
  const LeaseRef lease = lock_value(self.client->locks().show(argument.lease_ref, argument.ownership_ref));
  py::dict out;
  out["lease_ref"] = lease.lease_ref;
  out["owner_id"] = lease.owner_id;
  py::list paths;
  py::list covered;
  for (const LockRequest& request : lease.covered) {
    paths.append(request.lock_path);
    py::dict one;
    one["path"] = request.path;
    one["kind"] = request.tree ? "tree" : "exact";
    covered.append(one);
  }
  out["lock_paths"] = paths;
  out["covered_paths"] = covered;
  return out;
}

py::object adopt(BoundClient& self, py::handle, py::handle handoff) {
  if (!PyDict_Check(handoff.ptr())) throw_type_error("argument 'handoff_ref': object cannot be cast as 'dict'");
  const auto dict = py::reinterpret_borrow<py::dict>(handoff);
  const auto text = [&](const char* key) {
    return dict.contains(key) ? std::string(text_of(dict[key], key)) : std::string();
  };
  const std::string owner = dict.contains("owner_id") ? text("owner_id") : text("handle_id");
  if (owner.empty()) throw_raised({"ValueError", "handoff_ref.owner_id or handoff_ref.handle_id required"});
  if (!dict.contains("lock_paths")) throw_raised({"ValueError", "handoff_ref.lock_paths required"});
  const auto paths = texts_of(dict["lock_paths"], "lock_paths");
  return lease_dict(lock_value(self.client->locks().adopt(text("lease_ref"), owner, paths)), true);
}

py::object observe(BoundClient& self, py::handle ctx) {
  (void)context_of(ctx);
  const LockReport report = self.client->locks().report();
  py::list conflicts;
  for (const LockConflict& conflict : report.conflicts) {
    py::dict one;
    one["lock_path"] = conflict.lock_path;
    one["conflicting_owner"] = conflict.owner;
    one["conflicting_kind"] = conflict.tree ? "Tree" : "Exact";
    conflicts.append(one);
  }
  py::dict out;
  out["active_locks"] = report.active;
  out["waiting_locks"] = report.waiting;
  out["stale_locks_removed"] = report.stale_removed;
  out["conflicts"] = conflicts;
  return out;
}

}  // namespace

void bind_locks(ClientClass& type) {
  bind_acquire(type);
  type.def("pathlock_as_borrowed", as_borrowed, arg("ctx"), arg("owned_lease_ref"));
  type.def(
      "pathlock_refresh",
      [](BoundClient& self, py::handle, py::handle owned) {
        const LeaseArgument lease = owned_lease_of(owned);
        (void)lock_value(self.client->locks().refresh(lease.lease_ref, lease.ownership_ref));
        return "refreshed";
      },
      arg("ctx"), arg("owned_lease_ref"));
  type.def(
      "pathlock_release",
      [](BoundClient& self, py::handle, py::handle owned) {
        const LeaseArgument lease = owned_lease_of(owned);
        lock_value(unlocked([&] { return self.client->locks().release(lease.lease_ref, lease.ownership_ref); }));
      },
      arg("ctx"), arg("owned_lease_ref"));
  type.def(
      "pathlock_release_selected",
      [](BoundClient& self, py::handle, py::handle owned, py::handle lock_paths) {
        const LeaseArgument lease = owned_lease_of(owned);
        const auto paths = texts_of(lock_paths, "lock_paths");
        lock_value(unlocked(
            [&] { return self.client->locks().release_selected(lease.lease_ref, lease.ownership_ref, paths); }));
      },
      arg("ctx"), arg("owned_lease_ref"), arg("lock_paths"));
  type.def("pathlock_to_handoff", to_handoff, arg("ctx"), arg("owned_lease_ref"));
  type.def(
      "pathlock_handoff",
      [](BoundClient& self, py::handle, py::handle owned) {
        const LeaseArgument lease = owned_lease_of(owned);
        lock_value(self.client->locks().hand_off(lease.lease_ref, lease.ownership_ref));
      },
      arg("ctx"), arg("owned_lease_ref"));
  type.def("pathlock_adopt", adopt, arg("ctx"), arg("handoff_ref"));
  type.def(
      "pathlock_is_locked",
      [](BoundClient& self, py::handle, py::handle path, py::handle ignore_stale) {
        (void)flag_of(ignore_stale, "ignore_stale");
        const LockRequest request = requests_of(self, {{std::string(text_of(path, "path")), false}}, false).front();
        return lock_value(unlocked([&] { return self.client->locks().is_locked(request.path); }));
      },
      arg("ctx"), arg("path"), arg("ignore_stale") = true);
  type.def("pathlock_observe", observe, arg("ctx") = py::none());
}

}  // namespace ragfs::python
