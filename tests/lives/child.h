// Child: another process of a test, made by fork(), that runs one function and can be told to go on.
//
// Made while the test has no threads of its own beside its instances'. Killed, when it still runs, with the object.
// Thread-safety: belongs to the test's thread.
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>

namespace ragfs {

class Child {
 public:
  // `work` answers the exit status.
  explicit Child(const std::function<int(Child&)>& work) {
    if (::pipe(up_.data()) != 0 || ::pipe(down_.data()) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) ::_exit(work(*this));
  }
  ~Child() {
    if (pid_ > 0) (void)::kill(pid_, SIGKILL);
    (void)wait();
    for (const int fd : {up_[0], up_[1], down_[0], down_[1]}) ::close(fd);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  // In the child: tells the test that it came so far; waits for the test.
  void say() { (void)!::write(up_[1], "x", 1); }
  void wait_for_go() { (void)take(down_[0]); }
  // In the test: the same from the other side. False after 20 s.
  bool wait_for_word() { return take(up_[0]); }
  void go() { (void)!::write(down_[1], "x", 1); }
  // Its exit status; minus the signal that killed it.
  int wait() {
    if (pid_ <= 0) return status_;
    int status = 0;
    (void)::waitpid(pid_, &status, 0);
    pid_ = 0;
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    return status_;
  }

 private:
  static bool take(int fd) {
    constexpr int kTimeout_ms = 20'000;
    struct pollfd waits = {fd, POLLIN, 0};
    char byte = 0;
    return ::poll(&waits, 1, kTimeout_ms) == 1 && ::read(fd, &byte, 1) == 1;
  }
  std::array<int, 2> up_{-1, -1};
  std::array<int, 2> down_{-1, -1};
  pid_t pid_ = -1;
  int status_ = -1;
};

}  // namespace ragfs
