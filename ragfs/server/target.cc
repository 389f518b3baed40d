#include "ragfs/server/target.h"

#include <algorithm>

namespace ragfs::server {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

Result<std::string> percent_decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '%') {
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) return fail(ErrorCode::invalid_argument, "a '%' without two hexadecimal digits");
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += c == '+' && plus_is_space ? ' ' : c;
    }
  }
  return out;
}

Result<Target> Target::parse(std::string_view text) {
  if (text.empty() || text.front() != '/') return fail(ErrorCode::invalid_argument, "a target begins with '/'");
  text = text.substr(0, text.find('#'));
  const size_t mark = text.find('?');
  Target target;
  auto path = percent_decode(text.substr(0, mark), false);
  if (!path) return std::unexpected(path.error());
  target.path_ = std::move(*path);
  if (mark == std::string_view::npos) return target;
  std::string_view rest = text.substr(mark + 1);
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    if (pair.empty()) continue;
    const size_t equals = pair.find('=');
    auto name = percent_decode(pair.substr(0, equals), true);
    auto value = percent_decode(equals == std::string_view::npos ? "" : pair.substr(equals + 1), true);
    if (!name) return std::unexpected(name.error());
    if (!value) return std::unexpected(value.error());
    if (target.parameter(*name) != nullptr) {
      return fail(ErrorCode::invalid_argument, "parameter \"" + *name + "\" is given twice");
    }
    if (target.parameters_.size() >= kMaxParameters) return fail(ErrorCode::invalid_argument, "too many parameters");
    target.parameters_.emplace_back(std::move(*name), std::move(*value));
  }
  return target;
}

const std::string* Target::parameter(std::string_view name) const {
  const auto found = std::ranges::find(parameters_, name, &std::pair<std::string, std::string>::first);
  return found == parameters_.end() ? nullptr : &found->second;
}

}  // namespace ragfs::server
