#include "ragfs/server/caller.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

namespace ragfs::server {
namespace {

Result<Caller> parse_rights(std::istringstream& words, size_t number) {
  const auto wrong = [&](std::string_view what) {
    return fail(ErrorCode::config, fmt::format("token {}: {}", number, what));
  };
  Caller caller;
  caller.id = number;
  for (std::string word; words >> word;) {
    if (word.starts_with('#')) break;
    if (word == "read-only") {
      caller.read_only = true;
    } else if (word.starts_with("account=") && word.size() > 8) {
      caller.account = word.substr(8);
    } else if (word.starts_with("root=/")) {
      auto root = Path::parse(word.substr(5));
      if (!root) return wrong("root= is not a path of the tree: " + root.error().message);
      caller.root = std::move(*root);
    } else {
      return wrong("after the token come account=NAME, root=/PATH and read-only, nothing else");
    }
  }
  return caller;
}

}  // namespace

TokenSet::Digest TokenSet::digest_of(std::string_view token) {
  Digest digest{};
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), digest.data());
  return digest;
}

Result<TokenSet> TokenSet::parse(std::string_view text) {
  TokenSet set;
  std::string lines(text);
  for (char& c : lines) {
    if (c == ';') c = '\n';
  }
  std::istringstream stream(lines);
  for (std::string line; std::getline(stream, line);) {
    std::istringstream words(line);
    std::string token;
    if (!(words >> token) || token.starts_with('#')) continue;
    const size_t number = set.entries_.size() + 1;
    const auto wrong = [&](std::string_view what) {
      return fail(ErrorCode::config, fmt::format("token {}: {}", number, what));
    };
    if (number > kMaxTokens) return wrong(fmt::format("more than {} tokens", kMaxTokens));
    if (token.size() < kMinTokenBytes) return wrong(fmt::format("is shorter than {} characters", kMinTokenBytes));
    auto caller = parse_rights(words, number);
    if (!caller) return std::unexpected(caller.error());
    if (set.find(token) != nullptr) return wrong("is the same as one before it");
    set.entries_.push_back({digest_of(token), std::move(*caller)});
  }
  return set;
}

Result<TokenSet> TokenSet::load(const ServerConfig& config) {
  std::string text;
  std::string from;
  if (!config.tokens_env.empty()) {
    from = "environment variable " + config.tokens_env;
    const char* value = std::getenv(config.tokens_env.c_str());
    if (value == nullptr) return fail(ErrorCode::config, fmt::format("server.tokens_env: {} is not set", from));
    text = value;
  } else if (!config.tokens_file.empty()) {
    from = config.tokens_file;
    std::ifstream file(config.tokens_file);
    std::ostringstream all;
    if (!file || !(all << file.rdbuf())) {
      const int error = errno;
      return fail(ErrorCode::config, fmt::format("server.tokens_file: {}: {}", from, std::strerror(error)), error);
    }
    text = std::move(all).str();
  } else {
    return TokenSet();
  }
  auto set = parse(text);
  if (!set) return fail(ErrorCode::config, fmt::format("{}: {}", from, set.error().message));
  if (set->empty()) return fail(ErrorCode::config, fmt::format("{} holds no token", from));
  return set;
}

const Caller* TokenSet::find(std::string_view token) const {
  const Digest asked = digest_of(token);
  const Caller* found = nullptr;
  for (const Entry& entry : entries_) {  // all of them, whichever it is
    if (CRYPTO_memcmp(entry.digest.data(), asked.data(), asked.size()) == 0) found = &entry.caller;
  }
  return found;
}

}  // namespace ragfs::server
