// The calls of a client for many paths.
#include <deque>
#include <utility>

#include "python/client.h"

namespace ragfs::python {

template <typename T>
std::vector<Answer<T>> Client::ask_many(std::span<const std::string> paths, Call call, const AskMany<T>& ask) {
  std::vector<Answer<T>> answers(paths.size());
  std::deque<Place> places;  // stay where they are
  std::vector<PathView> views;
  std::vector<size_t> indexes;
  for (size_t i = 0; i < paths.size(); ++i) {
    Place& place = places.emplace_back();
    if (auto located = locate(paths[i], call, place); !located) {
      answers[i] = std::unexpected(std::move(located.error()));
      places.pop_back();
      continue;
    }
    views.push_back(place.path);
    indexes.push_back(i);
  }
  std::vector<Result<T>> results = ask(views);
  for (size_t k = 0; k < indexes.size(); ++k) {
    if (results[k]) {
      answers[indexes[k]] = *std::move(results[k]);
    } else {
      answers[indexes[k]] = std::unexpected(raised(results[k].error(), places[k].plugin(), call));
    }
    if constexpr (std::is_same_v<T, FileInfo>) {
      if (answers[indexes[k]]) places[k].show_mode(*answers[indexes[k]]);
    }
  }
  return answers;
}

std::vector<Answer<Bytes>> Client::read_many(const Context& ctx, std::span<const std::string> paths) {
  return ask_many<Bytes>(paths, Call::read,
                         [&](std::span<const PathView> views) { return table_->read_many(ctx, views); });
}

std::vector<Answer<FileInfo>> Client::stat_many(const Context& ctx, std::span<const std::string> paths) {
  return ask_many<FileInfo>(paths, Call::stat,
                            [&](std::span<const PathView> views) { return table_->stat_many(ctx, views); });
}

Answer<std::vector<AgentEntry>> Client::list_with_abstracts(const Context& ctx, std::string_view path,
                                                            const AgentListingOptions& options) {
  Place place;
  if (auto located = locate(path, Call::list, place); !located) return std::unexpected(std::move(located.error()));
  auto entries = ragfs::list_with_abstracts(*table_, ctx, place.path, options);
  if (!entries) return std::unexpected(raised(entries.error(), place.plugin(), Call::list));
  for (AgentEntry& entry : *entries) place.show_mode(entry.info);
  return *std::move(entries);
}

Answer<std::vector<Client::WrittenPart>> Client::write_context(const Context& ctx, std::string_view path,
                                                               const ContextFiles& files) {
  Place place;
  if (auto located = locate(path, Call::write, place); !located) return std::unexpected(std::move(located.error()));
  std::deque<std::string> texts;  // these and the places stay where they are
  std::deque<Place> parts;
  std::vector<std::pair<const Place*, bool>> wanted;
  const std::string below = place.path.is_root() ? "/" : std::string(place.path.text()) + "/";
  const std::pair<std::string_view, bool> names[] = {{files.content_name, files.content.has_value()},
                                                     {kAbstractName, files.abstract.has_value()},
                                                     {kOverviewName, files.overview.has_value()}};
  for (const auto& [name, given] : names) {
    if (!given) continue;
    const std::string& text = texts.emplace_back(below + std::string(name));
    Place& part = parts.emplace_back();
    if (auto located = locate(text, Call::write, part); !located) {
      return std::unexpected(std::move(located.error()));
    }
    wanted.emplace_back(&part, false);
  }
  auto held = lock(ctx, wanted);
  if (!held) return std::unexpected(std::move(held.error()));
  auto written = ragfs::write_context(*table_, ctx, place.path, files);
  if (!written) return std::unexpected(raised(written.error(), place.plugin(), Call::write));
  std::vector<WrittenPart> out;
  for (WrittenFile& file : *written) {
    WrittenPart part{file.path.text(), Answer<uint64_t>()};
    if (file.result) {
      part.bytes = file.result->bytes;
    } else {
      part.bytes = std::unexpected(raised(file.result.error(), place.plugin(), Call::write));
    }
    out.push_back(std::move(part));
  }
  return out;
}

}  // namespace ragfs::python
