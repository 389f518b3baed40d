#include "tests/faults/fault_disk.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "ragfs/base/context.h"

namespace ragfs::faults {

int shell(const std::string& command, std::string* output) {
  std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return -1;
  std::string text;
  char part[4096];
  for (size_t got = 0; (got = std::fread(part, 1, sizeof part, pipe)) > 0;) text.append(part, got);
  const int status = ::pclose(pipe);
  while (text.ends_with('\n')) text.pop_back();
  if (output != nullptr) *output = text;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Result<std::unique_ptr<FaultDisk>> FaultDisk::make(const Options& options) {
  const auto cannot = [](const std::string& what) { return fail(ErrorCode::not_supported, what); };
  if (::geteuid() != 0) return cannot("not root");
  const std::string mkfs = "mkfs." + options.file_system;
  const bool no_device = options.file_system == "tmpfs";
  std::vector<std::string> tools = {"mount"};
  if (!no_device) tools.insert(tools.end(), {"losetup", mkfs, "xfs_io"});
  if (options.can_die || options.can_hang || options.can_drop) tools.insert(tools.end(), {"nbdkit", "nbdfuse"});
  for (const std::string& tool : tools) {
    if (shell("command -v " + tool) != 0) return cannot("no " + tool);
  }
  std::unique_ptr<FaultDisk> disk(new FaultDisk(options));
  std::string name = (std::filesystem::temp_directory_path() / "fault_disk_XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) return cannot("no temporary directory");
  disk->base_ = name;
  std::filesystem::create_directories(disk->mount_point());
  {
    const std::ofstream made(disk->image());
  }
  std::filesystem::resize_file(disk->image(), options.size_bytes);
  bool attached = no_device;
  if (options.can_hang) {
    attached = disk->serve("--filter=pause", fmt::format("pause-control={}/pause", disk->base_)) &&
               disk->attach(disk->base_ + "/nbd/nbd");
  } else if (options.can_drop) {
    attached = disk->serve_by_script() && disk->attach(disk->base_ + "/nbd/nbd");
  } else if (options.can_die) {
    attached =
        disk->serve("--filter=error", fmt::format("error=EIO error-rate=100% error-file={}/dead", disk->base_)) &&
        disk->attach(disk->base_ + "/nbd/nbd");
  } else if (!no_device) {
    attached = disk->attach(disk->image());
  }
  if (!attached) return cannot("no loop device, or no FUSE");
  std::string output;
  const std::string make = fmt::format("{} -q {} {}", mkfs, options.mkfs_options, disk->loop_);
  if (!no_device && shell(make, &output) != 0) return cannot(output);
  if (!disk->mount()) return cannot("mount failed");
  std::filesystem::create_directory(disk->directory());
  shell("sync -f " + disk->directory());
  return disk;
}

bool FaultDisk::serve(const std::string& filters, const std::string& parameters) {
  if (shell(fmt::format("nbdkit -P {0}/nbdkit.pid -U {0}/socket {1} file {0}/image {2} </dev/null >/dev/null 9>&-",
                        base_, filters, parameters)) != 0) {
    return false;
  }
  return mount_served();
}

bool FaultDisk::serve_by_script() {
  const std::string script = fmt::format(
      "nbdkit -P {0}/nbdkit.pid -U {0}/socket eval get_size='stat -c %s {0}/image' can_write='exit 0' "
      "can_flush='exit 0' flush='exit 0' "
      "pread='dd if={0}/image iflag=skip_bytes,count_bytes skip=$4 count=$3 bs=256k status=none' "
      "pwrite='if [ -e {0}/drop ]; then cat >/dev/null; else dd of={0}/image oflag=seek_bytes iflag=fullblock "
      "conv=notrunc seek=$4 bs=256k status=none; fi' </dev/null >/dev/null 9>&-",
      base_);
  return shell(script) == 0 && mount_served();
}

bool FaultDisk::mount_served() {
  std::filesystem::create_directories(base_ + "/nbd");
  std::ifstream(base_ + "/nbdkit.pid") >> nbdkit_pid_;
  served_ = true;
  // It stays in the foreground; it ends when its mount goes.
  shell(fmt::format("nbdfuse {0}/nbd --unix {0}/socket </dev/null >/dev/null 2>&1 9>&- &", base_));
  const Deadline until = Deadline::in_ms(10'000);
  while (!std::filesystem::exists(base_ + "/nbd/nbd")) {
    if (until.expired()) return false;
    std::this_thread::yield();
  }
  return true;
}

// The protocol of nbdkit's pause filter.
bool FaultDisk::control(char command, char answer) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (base_ + "/pause").copy(address.sun_path, sizeof address.sun_path - 1);
  char got = 0;
  const bool done = ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                    ::write(fd, &command, 1) == 1 && ::read(fd, &got, 1) == 1 && got == answer;
  ::close(fd);
  return done;
}

bool FaultDisk::attach(const std::string& file) {
  return shell("losetup --find --show --direct-io=on " + file, &loop_) == 0;
}

bool FaultDisk::mount(const std::string& mount_options) {
  const std::string what =
      loop_.empty() ? fmt::format("-t tmpfs -o size={} tmpfs", options_.size_bytes) : std::string(loop_);
  return shell(fmt::format("mount {} {} {}", mount_options, what, mount_point())) == 0;
}

bool FaultDisk::unmount() { return shell("umount " + mount_point()) == 0; }

void FaultDisk::detach() {
  if (!loop_.empty()) shell("losetup -d " + loop_);
  loop_.clear();
  if (!served_) return;
  served_ = false;
  shell("umount " + base_ + "/nbd || umount -l " + base_ + "/nbd");
  if (!nbdkit_pid_.empty()) shell("kill " + nbdkit_pid_);
}

FaultDisk::~FaultDisk() {
  if (base_.empty()) return;
  if (frozen_) thaw();
  if (options_.can_hang) go_on();
  std::error_code ignored;
  std::filesystem::remove(base_ + "/dead", ignored);  // or unmounting would fail
  std::filesystem::remove(base_ + "/drop", ignored);
  shell(fmt::format("umount {0} || umount -l {0}", mount_point()));
  detach();
  std::filesystem::remove_all(base_, ignored);
}

bool FaultDisk::shut_down() { return shell("xfs_io -x -c 'shutdown -f' " + mount_point()) == 0; }

bool FaultDisk::note_ext4_error() {
  const std::string device = std::filesystem::path(loop_).filename();
  return shell(fmt::format("echo test > /sys/fs/ext4/{}/trigger_fs_error", device)) == 0;
}

void FaultDisk::kill_device() { const std::ofstream made(base_ + "/dead"); }

void FaultDisk::drop_writes() { const std::ofstream made(base_ + "/drop"); }

bool FaultDisk::freeze() {
  frozen_ = shell("fsfreeze -f " + mount_point()) == 0;
  return frozen_;
}

bool FaultDisk::thaw() {
  frozen_ = false;
  return shell("fsfreeze -u " + mount_point()) == 0;
}

std::vector<FaultDisk::Range> FaultDisk::extents_of(const std::string& path) {
  std::vector<Range> ranges;
  std::string output;
  // Lines such as "0: 0.. 255: 4352.. 4607: 256: ..." in blocks of 512.
  if (shell("filefrag -b512 -v " + path, &output) != 0) return ranges;
  for (size_t at = 0; at < output.size();) {
    const size_t end = std::min(output.find('\n', at), output.size());
    unsigned number = 0;
    unsigned long long first = 0, last = 0, from = 0, to = 0;
    if (std::sscanf(output.substr(at, end - at).c_str(), " %u: %llu.. %llu: %llu.. %llu:", &number, &first, &last,
                    &from, &to) == 5) {
      ranges.push_back({from * 512, (to - from + 1) * 512});
    }
    at = end + 1;
  }
  return ranges;
}

bool FaultDisk::remount_with_bad(const std::vector<Range>& ranges) {
  if (!unmount()) return false;
  detach();
  // A map of GNU ddrescue: '+' can be read, '-' is bad; without gaps.
  std::ofstream map(base_ + "/map");
  map << "0x00000000 +\n";
  uint64_t at = 0;
  for (const Range& wanted : ranges) {
    constexpr uint64_t kCluster = 65'536;
    const uint64_t from = (wanted.offset + kCluster - 1) / kCluster * kCluster;
    const uint64_t to = (wanted.offset + wanted.bytes) / kCluster * kCluster;
    if (from >= to) continue;
    const Range range{from, to - from};
    if (range.offset > at) map << fmt::format("0x{:08x} 0x{:08x} +\n", at, range.offset - at);
    map << fmt::format("0x{:08x} 0x{:08x} -\n", range.offset, range.bytes);
    at = range.offset + range.bytes;
  }
  map << fmt::format("0x{:08x} 0x{:08x} +\n", at, options_.size_bytes - at);
  map.close();
  return serve("--filter=cow --filter=ddrescue", fmt::format("ddrescue-mapfile={}/map", base_)) &&
         attach(base_ + "/nbd/nbd") && mount();
}

}  // namespace ragfs::faults
