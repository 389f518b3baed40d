#include "ragfs/fs/glob.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <charconv>
#include <limits>

#include "ragfs/fs/glob_pattern.h"
#include "ragfs/fs/names.h"

namespace ragfs {
namespace {

std::string sha256_hex(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  if (EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1) return {};
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) fmt::format_to(std::back_inserter(hex), "{:02x}", digest[i]);
  return hex;
}

std::string scope_hash(const GlobScope& scope) {
  const uint64_t level = scope.level_limit.value_or(std::numeric_limits<uint64_t>::max());
  std::string text;
  text += scope.path;
  text += '\0';
  text += scope.pattern;
  text += '\0';
  text += scope.show_hidden ? '1' : '0';
  text += '\0';
  text += std::to_string(level);
  return sha256_hex(text);
}

std::unexpected<Error> refuse(std::string why) { return fail(ErrorCode::invalid_operation, std::move(why)); }

// Collects one page: skips `offset` matches, keeps at most `most`, and looks one further to know whether more come.
class PageCollector {
 public:
  PageCollector(uint64_t offset, uint64_t most) : offset_(offset), most_(most) {}

  // False when the page is full and more is known to come.
  bool take(const WalkItem& item) {
    if (seen_++ < offset_) return true;
    if (page_.entries.size() == most_) {
      more_ = true;
      return false;
    }
    page_.entries.push_back(
        {std::string(item.path.text()), std::string(item.rel_path), item.info->name, item.info->is_dir()});
    return true;
  }
  uint64_t seen() const { return seen_; }
  bool more() const { return more_; }
  GlobPage& page() { return page_; }

 private:
  const uint64_t offset_;
  const uint64_t most_;
  uint64_t seen_ = 0;
  bool more_ = false;
  GlobPage page_;
};

}  // namespace

std::string make_glob_token(const GlobScope& scope, uint64_t offset) {
  return fmt::format("{}:{}", scope_hash(scope), offset);
}

Result<uint64_t> parse_glob_token(const GlobScope& scope, std::string_view token) {
  if (token.empty()) return refuse("empty continuation token");
  const size_t colon = token.find(':');
  if (colon == std::string_view::npos) return refuse("invalid continuation token");
  const std::string_view number = token.substr(colon + 1);
  uint64_t offset = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), offset);
  if (error != std::errc() || end != number.data() + number.size()) return refuse("invalid continuation token");
  if (token.substr(0, colon) != scope_hash(scope)) return refuse("continuation token scope mismatch");
  return offset;
}

Result<GlobPage> walk_glob(const Context& ctx, PathView root, std::string_view pattern, const GlobOptions& options,
                           const DirectorySource& source) {
  const Result<GlobPattern> compiled = GlobPattern::parse(pattern);
  if (!compiled) return std::unexpected(compiled.error());
  if (options.page_size == 0) return refuse("page_size must be positive");
  const GlobScope scope{root.text(), pattern, options.show_hidden, options.level_limit};
  uint64_t offset = 0;
  if (!options.token.empty()) {
    const Result<uint64_t> parsed = parse_glob_token(scope, options.token);
    if (!parsed) return std::unexpected(parsed.error());
    offset = *parsed;
  }
  WalkRules rules;
  rules.order = WalkOrder::by_name;
  rules.level_limit = options.level_limit;
  rules.enter = [&](const WalkItem& item) { return compiled->match(item.rel_path).below_may_match; };
  PageCollector collector(offset, options.page_size.value_or(std::numeric_limits<uint64_t>::max()));
  const Result<void> done = walk(ctx, root, rules, source, [&](const WalkItem& item) -> Result<bool> {
    if (!options.show_hidden && !item.info->is_dir() && is_hidden_name(item.info->name)) return true;
    return !compiled->match(item.rel_path).matches || collector.take(item);
  });
  if (!done) return std::unexpected(done.error());
  if (offset > collector.seen()) return refuse("continuation token out of range");
  GlobPage& page = collector.page();
  if (collector.more()) page.next_token = make_glob_token(scope, offset + page.entries.size());
  return std::move(page);
}

}  // namespace ragfs
