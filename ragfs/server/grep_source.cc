#include "ragfs/server/grep_source.h"

#include <nlohmann/json.hpp>

#include "ragfs/server/reply.h"

namespace ragfs::server {

std::string grep_line(PathView root, const GrepMatch& match) {
  std::string file(root.text());
  if (match.file != ".") file += (root.is_root() ? "" : "/") + match.file;
  Json json;
  add_name(json, "file", file);
  json["line"] = match.line;
  json["content"] = match.content;
  const auto lines = [](const std::vector<GrepLine>& around) {
    Json list = Json::array();
    for (const GrepLine& line : around) list.push_back({{"line", line.line}, {"content", line.content}});
    return list;
  };
  if (!match.before.empty() || !match.after.empty()) {
    json["metadata"] = {{"before", lines(match.before)}, {"after", lines(match.after)}};
  }
  return dump(json);
}

GrepSource::GrepSource(FileSystem& fs, Context context, Path root, GrepOptions options, int64_t stall_ms,
                       std::atomic<int>& running)
    : fs_(fs),
      context_(std::move(context)),
      root_(std::move(root)),
      options_(std::move(options)),
      stall_ms_(stall_ms),
      running_(running),
      thread_([this] { run(); }) {}

GrepSource::~GrepSource() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
  running_.fetch_sub(1);
}

bool GrepSource::push(std::string line) {
  const Deadline deadline = Deadline::in_ms(stall_ms_);
  const MutexLock lock(mutex_);
  while (!stop_ && buffer_.size() >= kBufferBytes) {
    if (!changed_.wait_until(mutex_, deadline)) return false;
  }
  if (stop_) return false;
  ++count_;
  buffer_ += line;
  buffer_ += '\n';
  changed_.notify_all();
  return true;
}

void GrepSource::run() {
  bool cut_off = false;
  const auto sink = [&](GrepMatch&& match) {
    cut_off = !push(grep_line(root_, match));
    return !cut_off;
  };
  Result<void> outcome = fs_.grep(context_, root_, options_, sink);
  if (outcome && cut_off) outcome = fail(ErrorCode::cancelled, "the client stopped reading");
  const MutexLock lock(mutex_);
  done_ = true;
  outcome_ = std::move(outcome);
  if (outcome_) buffer_ += dump({{"type", "summary"}, {"count", count_}}) + "\n";
  changed_.notify_all();
}

Result<Bytes> GrepSource::next() {
  const MutexLock lock(mutex_);
  while (buffer_.empty() && !done_) {
    // A part that is long in coming is sent as an empty line: the client sees that the search goes on.
    if (!changed_.wait_until(mutex_, Deadline::in_ms(stall_ms_ / 4)) && buffer_.empty() && !done_) {
      return Bytes::from_static("\n");
    }
  }
  if (buffer_.empty() && !outcome_) return std::unexpected(outcome_.error());
  std::string part = std::move(buffer_);
  buffer_.clear();
  changed_.notify_all();
  return Bytes::from_string(std::move(part));
}

}  // namespace ragfs::server
