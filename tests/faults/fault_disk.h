// FaultDisk: a real file system on a loop device whose disk a test can kill, freeze, or make bad in places.
//
// For: tests of the disk tier. The device is a file (plain), or that file served by nbdkit with its error and ddrescue
// filters through nbdfuse. Needs root, loop devices and, for the latter, FUSE: make() says what the machine cannot, and
// the test is skipped. Everything it started or mounted is undone when it goes.
// Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ragfs/base/error.h"

namespace ragfs::faults {

// Runs a shell command; its exit status, 0 = success. `output`, where given, gets what it printed.
int shell(const std::string& command, std::string* output = nullptr);

class FaultDisk {
 public:
  struct Options {
    std::string file_system = "xfs";  // xfs, ext4 or tmpfs, which has no device
    std::string mkfs_options;
    std::string mount_options;
    uint64_t size_bytes = uint64_t{400} << 20;
    bool can_hang = false;  // through nbdkit: hang() and go_on()
    bool can_die = false;   // through nbdkit: kill_device()
    bool can_drop = false;  // through nbdkit: drop_writes()
  };
  // Errors: not_supported, with what the machine lacks.
  static Result<std::unique_ptr<FaultDisk>> make(const Options& options);
  ~FaultDisk();
  FaultDisk(const FaultDisk&) = delete;
  FaultDisk& operator=(const FaultDisk&) = delete;

  // An empty directory on it.
  std::string directory() const { return mount_point() + "/cache"; }
  std::string mount_point() const { return base_ + "/mount"; }

  // The file system shuts itself down, as after an error of its log.
  bool shut_down();
  // Every call on the device fails with EIO from here on. Only with can_die.
  void kill_device();
  // Writes to the device are acknowledged and not made, from here on. Only with can_drop.
  void drop_writes();
  // Calls on the device are not answered until go_on(). Only with can_hang.
  bool hang() { return control('p', 'P'); }
  bool go_on() { return control('r', 'R'); }
  // ext4 notes an error of its own, as it does for broken metadata; errors=... of the mount options says what follows.
  bool note_ext4_error();
  bool freeze();
  bool thaw();
  bool unmount();
  bool mount() { return mount(options_.mount_options); }
  bool mount(const std::string& mount_options);
  // Mounts again through a device where these bytes of the disk cannot be read, as far as they are whole blocks of
  // 64 KiB (the cow filter reads such). Only without can_die and can_hang.
  struct Range {
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };
  bool remount_with_bad(const std::vector<Range>& ranges);
  // Where a file of it lies on the device.
  std::vector<Range> extents_of(const std::string& path);

 private:
  explicit FaultDisk(Options options) : options_(std::move(options)) {}
  bool serve(const std::string& filters, const std::string& parameters);
  // By a script for each call, whose writes come to nothing once the file "drop" is there.
  bool serve_by_script();
  // Makes what nbdkit serves a file, base_/nbd/nbd.
  bool mount_served();
  bool control(char command, char answer);
  bool attach(const std::string& file);
  void detach();
  std::string image() const { return base_ + "/image"; }

  const Options options_;
  std::string base_;
  std::string loop_;
  std::string nbdkit_pid_;
  bool served_ = false;
  bool frozen_ = false;
};

}  // namespace ragfs::faults
