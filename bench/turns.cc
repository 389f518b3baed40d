#include "bench/turns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "ragfs/base/hash.h"

namespace ragfs::bench {
namespace {

constexpr uint32_t kAbstractBytes = 320;
constexpr uint32_t kOverviewBytes = 2'200;
constexpr uint32_t kAppendedBytes = 600;
constexpr size_t kSiblings = 8;
constexpr uint64_t kSessions = 400;
// One turn in so many.
constexpr uint64_t kAppendEvery = 5;
constexpr uint64_t kRenameEvery = 500;
constexpr uint64_t kRemoveEvery = 400;
constexpr uint64_t kScanEvery = 300;

std::string drawer_of(const std::string& name) {
  const char first = name.empty() ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(name.front())));
  return std::string(1, std::isalnum(static_cast<unsigned char>(first)) != 0 ? first : '_');
}

using Pages = std::map<std::string, std::map<std::string, std::vector<std::pair<std::string, uint32_t>>>>;

Pages pages_in(const std::string& folder) {
  Pages pages;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const std::string name = entry.path().filename().string();
    pages[entry.path().parent_path().filename().string()][drawer_of(name)].emplace_back(
        name, static_cast<uint32_t>(entry.file_size()));
  }
  return pages;
}

Pages drawn_pages(uint64_t seed) {
  constexpr int kPages = 7'425;
  std::mt19937_64 random(seed);
  std::lognormal_distribution<double> size(6.0, 0.6);  // median 400 bytes
  Pages pages;
  for (int i = 0; i < kPages; ++i) {
    const std::string name = fmt::format("{}{}.md", static_cast<char>('a' + random() % 26), i);
    pages[fmt::format("project{:02}", random() % 13)][drawer_of(name)].emplace_back(
        name, static_cast<uint32_t>(std::clamp(size(random), 40.0, 20'000.0)));
  }
  return pages;
}

class TurnWriter {
 public:
  TurnWriter(const Tree& tree, uint64_t seed) : tree_(tree), random_(seed) {}

  void turn(const Request& request, uint64_t number) {
    const uint64_t root = request.blocks.empty() ? number : request.blocks.front();
    const Directory& directory = popular(root);
    walk_down(directory);
    read_siblings(directory);
    const size_t pages = 1 + random_() % 3;
    for (size_t i = 0; i < pages && i < request.blocks.size(); ++i) {
      const uint64_t block = request.blocks[request.blocks.size() - 1 - i];
      read(tree_.files[directory.pages[mix64(block) % directory.pages.size()]].path);
    }
    if (number % kAppendEvery == 0) append_to_session(mix64(root) % kSessions);
    if (number % kRenameEvery == kRenameEvery - 1) rename_something();
    if (number % kRemoveEvery == kRemoveEvery - 1) remove_session(random_() % kSessions);
    if (number % kScanEvery == kScanEvery - 1) scan(directory.project);
  }
  std::vector<Call> take() && { return std::move(calls_); }

 private:
  // A square of a uniform number: the first tenth of the directories gets about a third of the turns.
  const Directory& popular(uint64_t block) const {
    const double uniform = static_cast<double>(mix64(block) >> 11) / static_cast<double>(uint64_t{1} << 53);
    const auto at = static_cast<size_t>(uniform * uniform * static_cast<double>(tree_.directories.size()));
    return tree_.directories[std::min(at, tree_.directories.size() - 1)];
  }
  void list(std::string path) { calls_.push_back({CallKind::list, std::move(path), {}, 0}); }
  void read(const std::string& path) { calls_.push_back({CallKind::read, path, {}, 0}); }

  void walk_down(const Directory& directory) {
    list("/");
    for (size_t at = directory.path.find('/', 1); at != std::string::npos; at = directory.path.find('/', at + 1)) {
      list(directory.path.substr(0, at));
    }
    list(directory.path);
  }
  void read_siblings(const Directory& directory) {
    const std::vector<uint32_t>& siblings = tree_.projects[directory.project];
    const size_t first = static_cast<size_t>(&directory - tree_.directories.data()) % siblings.size();
    for (size_t i = 0; i < std::min(kSiblings, siblings.size()); ++i) {
      const Directory& sibling = tree_.directories[siblings[(first + i) % siblings.size()]];
      read(tree_.files[sibling.abstract_file].path);
      if (i < 2) read(tree_.files[sibling.overview_file].path);
    }
  }
  static std::string session(uint64_t number) { return fmt::format("/acct/session/s{:03}", number); }
  void append_to_session(uint64_t number) {
    const std::string home = session(number);
    calls_.push_back({CallKind::append, home + "/messages.md", {}, kAppendedBytes});
    calls_.push_back({CallKind::write, home + "/.abstract.md", {}, kAbstractBytes});
    calls_.push_back({CallKind::write, home + "/.overview.md", {}, kOverviewBytes});
    list(home);
    read(home + "/.abstract.md");
    read(home + "/messages.md");
  }
  // There and back, so that every path stays where the other calls look for it.
  void rename_something() {
    const Directory& directory = tree_.directories[random_() % tree_.directories.size()];
    const std::string aside = directory.path + "-moved";
    calls_.push_back({CallKind::rename_directory, directory.path, aside, 0});
    list(aside);
    calls_.push_back({CallKind::rename_directory, aside, directory.path, 0});
  }
  void remove_session(uint64_t number) { calls_.push_back({CallKind::remove_all, session(number), {}, 0}); }
  void scan(uint32_t project) {
    for (const uint32_t at : tree_.projects[project]) {
      for (const uint32_t page : tree_.directories[at].pages) {
        calls_.push_back({CallKind::scan_read, tree_.files[page].path, {}, 0});
      }
    }
  }

  const Tree& tree_;
  std::mt19937_64 random_;
  std::vector<Call> calls_;
};

}  // namespace

Tree tree_of_pages(const std::string& folder, uint64_t seed) {
  Tree tree;
  const auto add = [&](std::string path, uint32_t size) {
    tree.files.push_back({std::move(path), size});
    tree.bytes += size;
    return static_cast<uint32_t>(tree.files.size() - 1);
  };
  for (auto& [project, drawers] : folder.empty() ? drawn_pages(seed) : pages_in(folder)) {
    tree.projects.emplace_back();
    for (auto& [drawer, pages] : drawers) {
      Directory directory;
      directory.path = fmt::format("/acct/resources/{}/{}", project, drawer);
      directory.project = static_cast<uint32_t>(tree.projects.size() - 1);
      directory.abstract_file = add(directory.path + "/.abstract.md", kAbstractBytes);
      directory.overview_file = add(directory.path + "/.overview.md", kOverviewBytes);
      std::ranges::sort(pages);
      for (const auto& [name, size] : pages) directory.pages.push_back(add(directory.path + "/" + name, size));
      tree.projects.back().push_back(static_cast<uint32_t>(tree.directories.size()));
      tree.directories.push_back(std::move(directory));
    }
  }
  return tree;
}

std::vector<Request> requests_of(const std::string& file, size_t most, uint64_t seed) {
  std::vector<Request> requests;
  if (file.empty()) {
    // Conversations of a few turns, of which fifty are open at a time; each turn adds blocks to its chain.
    std::mt19937_64 random(seed);
    std::vector<Request> open(50);
    for (uint64_t block = 1; requests.size() < most; ++block) {
      Request& chain = open[random() % open.size()];
      if (random() % 6 == 0) chain.blocks.clear();
      chain.blocks.push_back(block);
      requests.push_back(chain);
    }
    return requests;
  }
  std::ifstream lines(file);
  for (std::string line; requests.size() < most && std::getline(lines, line);) {
    size_t at = line.find("\"hash_ids\": [");
    if (at == std::string::npos) continue;
    Request request;
    for (at = line.find('[', at) + 1; at < line.size() && line[at] != ']';) {
      uint64_t block = 0;
      const auto [end, error] = std::from_chars(line.data() + at, line.data() + line.size(), block);
      if (error != std::errc()) break;
      if (block != 0) request.blocks.push_back(block);
      at = line.find_first_of("0123456789]", static_cast<size_t>(end - line.data()));
    }
    requests.push_back(std::move(request));
  }
  return requests;
}

std::vector<Call> calls_of(const Tree& tree, const std::vector<Request>& requests, uint64_t seed) {
  TurnWriter writer(tree, seed);
  for (size_t i = 0; i < requests.size(); ++i) writer.turn(requests[i], i);
  return std::move(writer).take();
}

}  // namespace ragfs::bench
