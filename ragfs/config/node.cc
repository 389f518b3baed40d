#include "ragfs/config/node.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <cerrno>
#include <cstring>
#include <sstream>

#include "ragfs/config/json_check.h"

namespace ragfs {
namespace {

constexpr size_t kMaxNodes = 100'000;
constexpr int kMaxDepth = 64;

struct Converter {
  std::string_view file;
  size_t nodes = 0;

  std::unexpected<Error> error(const YAML::Mark& mark, std::string_view what) const {
    return fail(ErrorCode::config, fmt::format("{}:{}:{}: {}", file, mark.line + 1, mark.column + 1, what));
  }

  Result<Node> map(const YAML::Node& from, Node node, int depth) {
    for (const auto& pair : from) {
      if (!pair.first.IsScalar()) return error(pair.first.Mark(), "a key must be a word");
      NodeEntry entry{pair.first.Scalar(), pair.first.Mark().line + 1, {}};
      for (const NodeEntry& earlier : node.entries) {
        if (earlier.key == entry.key) {
          return error(pair.first.Mark(),
                       fmt::format("\"{}\" is given twice (first on line {})", entry.key, earlier.line));
        }
      }
      auto value = convert(pair.second, depth + 1);
      if (!value) return value;
      entry.value = std::move(*value);
      if (entry.value.line == 0) entry.value.line = entry.line;
      node.entries.push_back(std::move(entry));
    }
    return node;
  }

  Result<Node> convert(const YAML::Node& from, int depth) {
    if (++nodes > kMaxNodes) return error(from.Mark(), fmt::format("more than {} values", kMaxNodes));
    if (depth > kMaxDepth) return error(from.Mark(), fmt::format("nested deeper than {} levels", kMaxDepth));
    Node node;
    node.line = from.Mark().is_null() ? 0 : from.Mark().line + 1;
    switch (from.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null: return node;
      case YAML::NodeType::Scalar:
        node.kind = Node::Kind::scalar;
        node.text = from.Scalar();
        node.quoted = from.Tag() == "!";
        return node;
      case YAML::NodeType::Sequence:
        node.kind = Node::Kind::sequence;
        for (const auto& item : from) {
          auto value = convert(item, depth + 1);
          if (!value) return value;
          node.items.push_back(std::move(*value));
        }
        return node;
      case YAML::NodeType::Map: node.kind = Node::Kind::map; return map(from, std::move(node), depth);
    }
    return error(from.Mark(), "a value of no known kind");
  }
};

// Remembers the line where the value of the latest document begins.
class DocumentLines final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark&) override { line_ = 0; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { at(mark); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { at(mark); }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t, const std::string&) override { at(mark); }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    at(mark);
  }
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    at(mark);
  }
  void OnMapEnd() override {}
  int line() const { return line_ == 0 ? 1 : line_; }

 private:
  void at(const YAML::Mark& mark) {
    if (line_ == 0) line_ = mark.line + 1;
  }
  int line_ = 0;
};

// 0 when there is one document or none. Not YAML::LoadAll: on text such as `,` it finds empty documents without end.
int second_document_line(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentLines lines;
  return parser.HandleNextDocument(lines) && parser.HandleNextDocument(lines) ? lines.line() : 0;
}

int hex_value(std::string_view digits) {
  int value = 0;
  for (const char c : digits) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

// JSON writes a character beyond U+FFFF as two \u escapes; YAML knows only \U with eight digits.
std::string join_surrogates(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '\\' && at + 12 <= text.size() && text[at + 1] == 'u' && text.substr(at + 6, 2) == "\\u") {
      const int high = hex_value(text.substr(at + 2, 4));
      const int low = hex_value(text.substr(at + 8, 4));
      if (high >= 0xD800 && high < 0xDC00 && low >= 0xDC00 && low < 0xE000) {
        out += fmt::format("\\U{:08x}", 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00));
        at += 12;
        continue;
      }
    }
    const size_t step = text[at] == '\\' && at + 1 < text.size() ? 2 : 1;
    out += text.substr(at, step);
    at += step;
  }
  return out;
}

}  // namespace

const Node* Node::find(std::string_view key) const {
  for (const NodeEntry& entry : entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

std::string Node::described() const {
  switch (kind) {
    case Kind::null: return "nothing";
    case Kind::scalar: return quoted ? fmt::format("\"{}\"", text) : text;
    case Kind::sequence: return "a list";
    case Kind::map: return "a section";
  }
  return "nothing";
}

Result<Node> parse_document(std::string_view text, std::string_view file) {
  if (text.size() > kMaxConfigBytes) {
    return fail(ErrorCode::config,
                fmt::format("{}: larger than {} bytes: is this a configuration?", file, kMaxConfigBytes));
  }
  if (text.find('\0') != std::string_view::npos) {
    return fail(ErrorCode::config, fmt::format("{}: contains a NUL byte: is this a configuration?", file));
  }
  const size_t first = text.find_first_not_of(" \t\r\n");
  const bool json = first != std::string_view::npos && text[first] == '{';
  if (json) {
    if (auto valid = check_json(text, file); !valid) return std::unexpected(valid.error());
  }
  try {
    const std::string whole = json ? join_surrogates(text) : std::string(text);
    if (const int line = second_document_line(whole); line > 0) {
      return fail(ErrorCode::config, fmt::format("{}:{}: a second document begins; one is expected", file, line));
    }
    Converter converter{file};
    return converter.convert(YAML::Load(whole), 0);
  } catch (const YAML::Exception& e) {
    const int line = e.mark.is_null() ? 1 : e.mark.line + 1;
    const int column = e.mark.is_null() ? 1 : e.mark.column + 1;
    return fail(ErrorCode::config,
                fmt::format("{}:{}:{}: not valid {}: {}", file, line, column, json ? "JSON" : "YAML", e.msg));
  }
}

Result<std::string> read_config_text(const std::string& file) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a FIFO must not hang the start
  const auto failed = [&](int error) {
    return fail(ErrorCode::config, fmt::format("{}: cannot be read: {}", file, std::strerror(error)), error);
  };
  if (fd < 0) return failed(errno);
  struct stat info{};
  if (::fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) {
    ::close(fd);
    return failed(EISDIR);
  }
  std::string text;
  char buffer[65536];
  for (;;) {
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      ::close(fd);
      return failed(error);
    }
    if (n == 0) break;
    text.append(buffer, static_cast<size_t>(n));
    if (text.size() > kMaxConfigBytes) break;
  }
  ::close(fd);
  if (text.size() > kMaxConfigBytes) {
    return fail(ErrorCode::config,
                fmt::format("{}: larger than {} bytes: is this a configuration?", file, kMaxConfigBytes));
  }
  return text;
}

}  // namespace ragfs
