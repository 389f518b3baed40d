#include "ragfs/fs/agent_context.h"

#include <utility>

namespace ragfs {

Result<std::vector<WrittenFile>> write_context(FileSystem& fs, const Context& ctx, PathView directory,
                                               const ContextFiles& files) {
  std::vector<WrittenFile> written;
  std::vector<std::string_view> values;
  const std::pair<std::string_view, std::optional<std::string_view>> parts[] = {
      {files.content_name, files.content}, {kAbstractName, files.abstract}, {kOverviewName, files.overview}};
  for (const auto& [name, value] : parts) {
    if (!value) continue;
    Result<Path> path = Path::join(directory, name);
    if (!path) return std::unexpected(std::move(path.error()));
    written.push_back({*std::move(path), WriteResult()});
    values.push_back(*value);
  }
  if (written.empty()) return fail(ErrorCode::invalid_operation, "there is nothing to write");
  std::vector<WriteItem> items;
  for (size_t i = 0; i < written.size(); ++i) items.push_back({written[i].path, values[i]});
  if (auto distinct = check_distinct(items); !distinct) return std::unexpected(std::move(distinct.error()));
  if (auto made = fs.ensure_parent_dirs(ctx, items.front().path, kDefaultDirMode); !made) {
    return std::unexpected(std::move(made.error()));
  }
  std::vector<Result<WriteResult>> results = fs.write_many(ctx, items);
  for (size_t i = 0; i < written.size(); ++i) written[i].result = std::move(results[i]);
  return written;
}

}  // namespace ragfs
