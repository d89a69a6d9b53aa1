/* Job: give a process group a comm of the library: any thread may call it; it can be left with
 *      operations under way.
 * Owns: the tutti_comm; the world, shared by all comms made from it; the door, which a thread holds
 *       while it starts an operation and never while it waits; the operations whose Work nobody
 *       holds any more.
 * Never: interprets an operation. */
#ifndef TORCH_COMM_H
#define TORCH_COMM_H

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <errno.h>

#include "torch/failure.h"
#include "torch/later.h"
#include "torch/road.h"
#include "torch/site.h"
#include "torch/tensors.h"

namespace tutti {

uint64_t forks();                       /* from the process that loaded this to this process */

/* How a rank joins a world. */
struct Joining {
    std::string job;
    int rank = 0, size = 1;
    std::chrono::milliseconds timeout{ 0 }, join_timeout{ 0 };
};

/* A world is joined for one default group, or for one group under a default group of another
 * backend. It lives as long as a comm made from it. Its own comm only makes comms. So making a comm
 * never waits behind an operation, and no failure of an operation breaks the world. */
class World {
public:
    explicit World(const Joining &);
    ~World();
    static std::shared_ptr<World> join(const Joining &);
    static std::vector<std::shared_ptr<World>> all();   /* all worlds of this process */
    const std::string job;
    const uint64_t born = forks();
    tutti_comm *whole = nullptr;
    std::mutex making;
};

/* An operation under way, and what it uses until it has ended. */
struct Flight {
    tutti_work *work = nullptr;
    Held held;
    at::Tensor factor;
    tutti_message got{ -1, 0, 0 };
    const char *site = "?";
    /* an extension of deadlines that ends together with this operation */
    std::shared_ptr<std::atomic<bool>> extends;
    bool message = false;   /* a send or recv: a deadline or a bad size fails only it */
};

/* What a comm of several hosts is made of, beside that of this host. */
struct Across {
    std::string name;                   /* of the group */
    Hosted where;
    std::unique_ptr<Leaders> leaders;
    std::unique_ptr<Messenger> messenger;
    std::shared_ptr<Board> board;
};

/* The program's functions that run when a comm has failed, or right before it is aborted. */
struct Hooks {
    void add(int64_t id, std::function<void()> hook);
    void remove(int64_t id);
    void run();

private:
    std::mutex lock;
    std::map<int64_t, std::function<void()>> hooks;
};

class Comm : public std::enable_shared_from_this<Comm> {
public:
  static std::shared_ptr<Comm> make(std::shared_ptr<World> world, const std::vector<int> &ranks,
                                    std::chrono::milliseconds timeout);
    /* of ranks on several hosts; ranks: of this host, in the world */
    static std::shared_ptr<Comm> make(std::shared_ptr<World> world, const std::vector<int> &ranks,
                                      std::chrono::milliseconds timeout, Across across);
  Comm(std::shared_ptr<World> world, tutti_comm *comm, std::vector<int> members,
       std::unique_ptr<Hosts> hosts = nullptr);
  /* Waits for nobody: a thread of later.h waits for the operations that are still under way. */
  ~Comm();

  /* Starts an operation: call(site, comm, &call) is the library's function. True: it is under way,
     * in flight.work. False: *failure says why not. Waits for nobody. Throws in a fork and after
     * close(). */
  template <class Call>
  bool start(Flight &flight, const tutti_call &how, Failure *failure, const Call &call)
  {
      check();
      reap();
      tutti_call with = how;
      with.work = &flight.work;
      flight.site = site_here();
      int r = -ECANCELED;
      if (!broken) {
          std::lock_guard<std::mutex> hold(door);
          r = call(flight.site, road(), &with);
      }
      if (r == 0) {
          number += !flight.message;
          return true;
      }
      *failure = failed(r, flight.message);
      return false;
    }

    /* Waits for it, at most patience_ms milliseconds (0: until its own deadline; negative: until it
     * ends). -EAGAIN: it is still under way. Else it has ended: its results are written back, and
     * its tensors are released. *failure: the reason, if it failed. Throws what a signal handler
     * has raised meanwhile. */
    int await(Flight &flight, int patience_ms, Failure *failure);
    bool is_over(const Flight &flight) const;
    bool is_fork() const { return born != forks(); }
    void check_fork() const             /* throws in a fork of the rank */
    {
        if (is_fork())
            check();
    }

    /* Takes over an operation that nobody waits for. */
    void leave(std::unique_ptr<Flight> flight);
    /* at the end of the program; returns how many operations it had to end */
    int  see_off_left(std::chrono::steady_clock::time_point until);

    bool spans_hosts() const { return hosts != nullptr; }
    /* The caller does not wait at once for what it has started. */
    void go_on()
    {
        if (hosts)
            hosts->go_on();
    }
    void abort(const std::string &why);
    void set_timeout(std::chrono::milliseconds timeout);
    /* Gives later operations this much more time, until the first of them has ended. */
    void extend(std::chrono::milliseconds more);
    /* of an operation before its start; given 0: the comm's */
    int  deadline_ms(int given, Flight *flight);
    void close() { is_closed = true; }  /* forbids new operations; those under way continue */

    /* a comm of these ranks of this comm; only those ranks call it */
    std::shared_ptr<Comm> create(const std::vector<int> &ranks);
    Failure failed(int error, bool message);
    uint64_t started() const { return number; }
    int error();                /* the cause that broke it; 0: none that this rank has seen */
    tutti_comm *get() const { return comm; } /* for questions of any thread: figures, gone ranks */

    const uint64_t born = forks();
    const int rank, size;
    const std::shared_ptr<World> world; /* of the ranks of this host */
    const std::vector<int> members;     /* the members' ranks in the world */
    const std::shared_ptr<Hooks> hooks = std::make_shared<Hooks>();
    const std::shared_ptr<Line> line = std::make_shared<Line>();

private:
    void check() const;
    void reap();
    Failure broke(Failure, int error, bool message);
    Road road() const { return Road{ comm, hosts.get() }; }
    std::mutex door;
    tutti_comm *const comm;             /* of the ranks of this host */
    std::shared_ptr<Hosts> hosts;       /* null: all ranks share it; never replaced */
    std::atomic<bool> is_closed{ false }, broken{ false };
    std::chrono::milliseconds limit{ 0 };
    std::atomic<uint64_t> number{ 0 };
    struct Extension {
        std::chrono::milliseconds more;
        std::shared_ptr<std::atomic<bool>> over;
        bool given;
    };
    std::vector<Extension> extensions;                  /* under the door */
    std::atomic<bool> extended{ false };
    std::mutex left_lock;
    std::vector<std::unique_ptr<Flight>> left;
    std::atomic<size_t> left_count{ 0 };
    std::mutex cause_lock;
    Failure cause;              /* what broke it: the first failure without an earlier cause */
};

/* At the end of the program: waits a moment for the operations under way on all comms, then ends
 * the threads that complete futures. Call it without the interpreter's lock. True: it had to give
 * up nothing. */
bool comms_leave();

/* The time from now; never, if it is beyond the range of the clock. */
std::chrono::steady_clock::time_point deadline_after(std::chrono::milliseconds);

/* in the library's form: 0 is the default, INT_MAX the most */
int milliseconds(std::chrono::milliseconds);
/* Of a group. torch gives each group 30 minutes if the program gives no time. These become the
   library's default, so that a wait with them may be part of a cycle. */
int group_limit(std::chrono::milliseconds);
void comm_setup();

}

#endif
