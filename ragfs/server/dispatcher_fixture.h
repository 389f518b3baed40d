// DispatcherFixture: a dispatcher over an instance with one memfs mount, for tests of what it answers.
//
// Thread-safety: as gtest's.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "ragfs/config/instance.h"
#include "ragfs/server/dispatcher.h"

namespace ragfs::server {

class DispatcherFixture : public testing::Test {
 protected:
  explicit DispatcherFixture(std::string mount_path) {
    MountConfig mount;
    mount.path = std::move(mount_path);
    mount.type = "memfs";
    Config config;
    config.mounts = {mount};
    auto opened = Instance::open(config);
    if (!opened) ADD_FAILURE() << opened.error().text();
    instance_ = std::move(*opened);
    ServerConfig server;
    server.worker_threads = 1;
    services_ = std::make_unique<Services>(*instance_, server, "1.2.3");
    dispatcher_ = std::make_unique<Dispatcher>(*services_, TokenSet(), true);
  }

  std::unique_ptr<Instance> instance_;
  std::unique_ptr<Services> services_;
  std::unique_ptr<Dispatcher> dispatcher_;
};

}  // namespace ragfs::server
