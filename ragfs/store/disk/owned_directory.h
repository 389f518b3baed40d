// OwnedDirectory: a disk directory that is ours alone: locked, with an owner record that says which life this is.
//
// For: keeping two processes out of one directory, refusing a directory that holds somebody else's files, and telling
// whether the last life ended in order. Nothing foreign is changed or deleted. Not for: buckets.
// Thread-safety: one thread at a time.
#pragma once

#include <string>

#include "ragfs/base/error.h"
#include "ragfs/store/disk/bucket_format.h"
#include "ragfs/store/disk/disk_io.h"

namespace ragfs {

class OwnedDirectory {
 public:
  // Locks `path`, which must exist, and begins a life. Errors, each saying what to do: not_found, not_a_directory,
  // permission_denied, read_only, already_exists (locked by another process), invalid_data (foreign or damaged), io.
  static Result<OwnedDirectory> open(DiskIo& io, const std::string& path);

  const OwnerRecord& owner() const { return owner_; }
  // The last life was closed in order.
  bool was_clean() const { return was_clean_; }
  // Gives the lock up: the directory is not used any more, and may be unmounted.
  void release() { lock_.close(); }
  // Notes an orderly close. After it nothing may be written.
  Result<void> mark_clean(DiskIo& io);

 private:
  Result<void> write(DiskIo& io);

  OwnedFd lock_;
  OwnerRecord owner_;
  bool was_clean_ = false;
};

}  // namespace ragfs
