#include "ragfs/cli/progress.h"

#include <fmt/format.h>

#include "ragfs/base/clock.h"
#include "ragfs/cli/text.h"

namespace ragfs::cli {
namespace {
constexpr int64_t kFirstDraw_ns = 500'000'000;
constexpr int64_t kRedraw_ns = 100'000'000;
}  // namespace

Progress::Progress(Console& console, std::string what, uint64_t total)
    : console_(console),
      what_(std::move(what)),
      total_(total),
      shown_(console.err_is_terminal() && !console.json()),
      start_ns_(Clock::system().monotonic_ns()),
      next_draw_ns_(start_ns_ + kFirstDraw_ns) {}

Progress::~Progress() {
  if (drawn_) console_.err("\r\x1b[K");
}

void Progress::advance(uint64_t items, uint64_t bytes) {
  items_ += items;
  bytes_ += bytes;
  if (!shown_) return;
  const int64_t now_ns = Clock::system().monotonic_ns();
  if (now_ns >= next_draw_ns_) draw(now_ns);
}

void Progress::draw(int64_t now_ns) {
  next_draw_ns_ = now_ns + kRedraw_ns;
  drawn_ = true;
  const double seconds = static_cast<double>(now_ns - start_ns_) / 1e9;
  const std::string of = total_ == 0 ? "" : fmt::format(" of {} ({}%)", grouped(total_), items_ * 100 / total_);
  console_.err(fmt::format("\r\x1b[K{} {}{}, {}, {:.0f} s", what_, grouped(items_), of, human_bytes(bytes_), seconds));
}

}  // namespace ragfs::cli
