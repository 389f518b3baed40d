// Several threads on every backend at once.
#include <atomic>
#include <thread>

#include "tests/contract/backend_contract.h"

namespace ragfs::contract {
namespace {

RAGFS_BACKEND_SUITE(CaseA17);
RAGFS_BACKEND_SUITE(CaseD31Races);
RAGFS_BACKEND_SUITE(CaseD43);
RAGFS_BACKEND_SUITE(BackendRaces);

// Runs `body(i)` on `count` threads that start together.
template <typename Body>
void together(int count, Body body) {
  std::atomic<int> waiting{count};
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      --waiting;
      while (waiting.load() > 0) std::this_thread::yield();
      body(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// The loser of a mkdir got "already exists" and the user a conflict.
TEST_P(CaseA17, ManyWritesBelowOneNewPathAllSucceed) {
  constexpr int kWriters = 32;
  for (int round = 0; round < 5; ++round) {
    const std::string base = "/r" + std::to_string(round) + "/a/b/c/d/e/f/g/h";
    std::atomic<int> failures{0};
    together(kWriters, [&](int i) {
      const std::string path = base + "/file" + std::to_string(i);
      if (!fs().ensure_parent_dirs(ctx, P(path), 0755)) ++failures;
      if (!fs().write(ctx, P(path), "x", 0, WriteFlag::create)) ++failures;
    });
    EXPECT_EQ(failures.load(), 0);
    EXPECT_EQ(names(base).size(), static_cast<size_t>(kWriters));
  }
}

TEST_P(CaseD31Races, OneOfTwoRenamesOfOneFileWins) {
  for (int round = 0; round < 200; ++round) {
    put("/from", "x");
    std::atomic<int> won{0};
    std::atomic<int> lost{0};
    together(2, [&](int i) {
      const auto renamed = fs().rename(ctx, P("/from"), P(i == 0 ? "/to0" : "/to1"));
      if (renamed) ++won;
      if (!renamed && renamed.error().code == ErrorCode::not_found) ++lost;
    });
    ASSERT_EQ(won.load(), 1);
    ASSERT_EQ(lost.load(), 1);
    ASSERT_EQ(names("/").size(), 1U);
    ASSERT_EQ(kind(fs().remove_all(ctx, P("/"))), "ok");
  }
}

TEST_P(CaseD31Races, OneOfTwoDirectoriesTakesTheEmptyPlace) {
  for (int round = 0; round < 100; ++round) {
    for (const char* dir : {"/a", "/b", "/place"}) make_dir(dir);
    put("/a/f", "a");
    put("/b/f", "b");
    std::atomic<int> won{0};
    std::atomic<int> refused{0};
    together(2, [&](int i) {
      const auto renamed = fs().rename(ctx, P(i == 0 ? "/a" : "/b"), P("/place"));
      if (renamed) ++won;
      if (!renamed && renamed.error().code == ErrorCode::directory_not_empty) ++refused;
    });
    ASSERT_EQ(won.load(), 1);
    ASSERT_EQ(refused.load(), 1);
    ASSERT_EQ(names("/").size(), 2U);
    ASSERT_EQ(names("/place"), std::set<std::string>{"f"});
    ASSERT_EQ(kind(fs().remove_all(ctx, P("/"))), "ok");
  }
}

// Crossing renames must neither hang nor make a directory its own ancestor.
TEST_P(CaseD31Races, CrossingRenamesOfDirectoriesKeepTheTree) {
  make_dir("/a");
  make_dir("/b");
  for (int round = 0; round < 200; ++round) {
    together(2, [&](int i) {
      if (i == 0) {
        (void)fs().rename(ctx, P("/a"), P("/b/a")).has_value();
      } else {
        (void)fs().rename(ctx, P("/b"), P("/a/b")).has_value();
      }
    });
    const bool a_below_b = *fs().exists(ctx, P("/b/a"));
    const bool b_below_a = *fs().exists(ctx, P("/a/b"));
    ASSERT_NE(a_below_b, b_below_a) << "exactly one rename can have happened";
    ASSERT_EQ(kind(fs().rename(ctx, P(a_below_b ? "/b/a" : "/a/b"), P(a_below_b ? "/a" : "/b"))), "ok");
  }
}

// 44 to 78 % of the reads of the original returned an empty file while it was overwritten.
TEST_P(CaseD43, ReadersSeeWholeContentsDuringOverwrites) {
  constexpr int kRounds = 400;
  const auto content = [](int i) {
    return std::string(100 + static_cast<size_t>(i % 50) * 997, static_cast<char>('a' + i % 26));
  };
  put("/f", content(0));
  std::atomic<bool> done{false};
  std::atomic<int> bad{0};
  std::atomic<int> reads{0};
  together(4, [&](int thread) {
    if (thread == 0) {
      for (int i = 1; i < kRounds; ++i) {
        const WriteFlag flag = i % 2 == 0 ? WriteFlag::create : WriteFlag::truncate;
        if (i % 5 == 0) {
          if (!fs().write(ctx, P("/staged"), content(i), 0, WriteFlag::create)) ++bad;
          if (!fs().rename(ctx, P("/staged"), P("/f"))) ++bad;
        } else if (!fs().write(ctx, P("/f"), content(i), 0, flag)) {
          ++bad;
        }
      }
      done = true;
      return;
    }
    while (!done) {
      const auto file = fs().read_file(ctx, P("/f"));
      const auto bytes = fs().read(ctx, P("/f"), 0, 0);
      const auto info = fs().stat(ctx, P("/f"));
      ++reads;
      if (!file || !bytes || !info) {
        ++bad;
        continue;
      }
      for (const std::string_view seen : {file->data.view(), bytes->view()}) {
        const bool whole = !seen.empty() && seen.find_first_not_of(seen[0]) == std::string_view::npos &&
                           seen.size() >= 100 && (seen.size() - 100) % 997 == 0;
        if (!whole) ++bad;
      }
      if (file->data.size() != file->meta.size) ++bad;
    }
  });
  EXPECT_EQ(bad.load(), 0) << "of " << reads.load() << " reads";
  EXPECT_GT(reads.load(), 0);
  EXPECT_EQ(get("/f"), content(kRounds - 1));
}

TEST_P(CaseD43, ListingsShowTheFileAndNothingElseDuringOverwrites) {
  put("/f", "0");
  std::atomic<bool> done{false};
  std::atomic<int> bad{0};
  together(2, [&](int thread) {
    if (thread == 0) {
      for (int i = 0; i < 300; ++i) {
        if (!fs().write(ctx, P("/f"), "content", 0, WriteFlag::create)) ++bad;
      }
      done = true;
      return;
    }
    while (!done) {
      const auto entries = fs().read_dir(ctx, P("/"));
      // Absence from a listing counts as proof: the name must be there, once, and no other.
      if (!entries || entries->size() != 1 || entries->at(0).name != "f") ++bad;
    }
  });
  EXPECT_EQ(bad.load(), 0);
}

TEST_P(BackendRaces, CompareAndWriteLosesNoIncrement) {
  put("/counter", "0");
  constexpr int kThreads = 4;
  constexpr int kEach = 50;
  std::atomic<int> failures{0};
  together(kThreads, [&](int /*thread*/) {
    for (int done = 0; done < kEach;) {
      const auto seen = fs().read(ctx, P("/counter"), 0, 0);
      if (!seen) {
        ++failures;
        return;
      }
      const std::string next = std::to_string(std::stoi(seen->str()) + 1);
      const auto swapped = fs().compare_and_write(ctx, P("/counter"), seen->view(), next);
      if (swapped && *swapped) ++done;
      if (!swapped && swapped.error().code != ErrorCode::would_block) {
        ++failures;
        return;
      }
    }
  });
  EXPECT_EQ(failures.load(), 0);
  EXPECT_EQ(get("/counter"), std::to_string(kThreads * kEach));
}

TEST_P(BackendRaces, OneOfManyCreatesNew) {
  for (int round = 0; round < 50; ++round) {
    const std::string path = "/f" + std::to_string(round);
    std::atomic<int> won{0};
    std::atomic<int> refused{0};
    together(8, [&](int i) {
      const auto made = i % 2 == 0 ? kind(fs().write(ctx, P(path), std::to_string(i), 0, WriteFlag::create_new))
                                   : kind(fs().create(ctx, P(path)));
      if (made == "ok") ++won;
      if (made == "already_exists") ++refused;
    });
    ASSERT_EQ(won.load(), 1);
    ASSERT_EQ(refused.load(), 7);
  }
}

TEST_P(BackendRaces, AppendsOfManyThreadsAllLand) {
  put("/log", "");
  constexpr int kThreads = 4;
  constexpr int kEach = 100;
  together(kThreads, [&](int i) {
    const std::string line = std::string(20, static_cast<char>('a' + i)) + "\n";
    for (int n = 0; n < kEach; ++n) ASSERT_EQ(kind(fs().write(ctx, P("/log"), line, 0, WriteFlag::append)), "ok");
  });
  const std::string log = get("/log");
  ASSERT_EQ(log.size(), static_cast<size_t>(kThreads * kEach * 21));
  for (size_t at = 0; at < log.size(); at += 21) {
    ASSERT_EQ(log.substr(at, 21), std::string(20, log[at]) + "\n") << "two appends were mixed";
  }
}

// Whatever else happens, a removal ends, and what is left is a tree that can be listed and removed.
TEST_P(BackendRaces, RemovalsRunBesideWrites) {
  std::atomic<bool> done{false};
  std::atomic<int> bad{0};
  together(3, [&](int i) {
    if (i == 0) {
      for (int round = 0; round < 100; ++round) {
        const std::string removed = kind(fs().remove_all(ctx, P("/t")));
        if (removed != "ok" && removed != "not_found" && removed != "directory_not_empty") ++bad;
      }
      done = true;
      return;
    }
    for (int n = 0; !done; ++n) {
      const std::string path = "/t/sub" + std::to_string(n % 3) + "/f" + std::to_string(i);
      const std::string made = kind(fs().ensure_parent_dirs(ctx, P(path), 0755));
      if (made != "ok" && made != "io") ++bad;
      const std::string wrote = kind(fs().write(ctx, P(path), "x", 0, WriteFlag::create));
      if (wrote != "ok" && wrote != "not_found") ++bad;
    }
  });
  EXPECT_EQ(bad.load(), 0);
  const std::string removed = kind(fs().remove_all(ctx, P("/t")));
  EXPECT_TRUE(removed == "ok" || removed == "not_found") << removed;
  EXPECT_TRUE(names("/").empty());
}

}  // namespace
}  // namespace ragfs::contract
