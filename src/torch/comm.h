/* Job: a comm of the library as a process group needs it: called from any thread, left when nobody
 *      holds it, whatever is under way.
 * Owns: the tutti_comm and, shared by all comms made from it, the world; the door, which a thread
 *   holds while it starts an operation and never while it waits; the operations whose Work nobody
 *   holds any more.
 * Never: what an operation is. */
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
#include "torch/site.h"
#include "torch/tensors.h"

namespace tutti {

uint64_t forks();                       /* between the process that loaded this and this one */

/* How a rank joins. */
struct Joining {
    std::string job;
    int rank = 0, size = 1;
    std::chrono::milliseconds timeout{ 0 }, join_timeout{ 0 };
};

/* A world is joined for one default group, or one group below a default group of another backend,
 * and lives as long as a comm made from it. Its own comm is for making comms alone, so that this
 * never stands behind an operation, and no failure of an operation breaks it. */
class World {
public:
    explicit World(const Joining &);
    ~World();
    static std::shared_ptr<World> join(const Joining &);
    static std::vector<std::shared_ptr<World>> all();   /* of this process */
    const std::string job;
    const uint64_t born = forks();
    tutti_comm *whole = nullptr;
    std::mutex making;
};

/* An operation under way, and what it has in use until it has ended. */
struct Flight {
    tutti_work *work = nullptr;
    Held held;
    at::Tensor factor;
    tutti_message got{ -1, 0, 0 };
    const char *site = "?";
    /* an extension of deadlines that ends with this operation */
    std::shared_ptr<std::atomic<bool>> extends;
    bool message = false;   /* a send or recv: its deadline, and what does not fit, fail it alone */
};

/* What a program wants called once a comm has failed, or is about to be aborted. */
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
  Comm(std::shared_ptr<World> world, tutti_comm *comm, std::vector<int> members);
  /* waits for nobody: what is still under way is seen to its end by a thread of later.h */
  ~Comm();

  /* Starts an operation: call(site, comm, &call) is the library's function. Whether it is under
     * way, in flight.work; else *failure says why not. Waits for nobody. Throws in a fork and
     * after close(). */
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
          r = call(flight.site, comm, &with);
      }
      if (r == 0) {
          number += !flight.message;
          return true;
      }
      *failure = failed(r, flight.message);
      return false;
    }

    /* Waits for it; at most so many milliseconds (0: as long as its own deadline, negative: until
     * it ends). -EAGAIN: it goes on. Else it has ended, and what it held is written back and let
     * go. *failure: why, if it failed. Throws what a signal's handler has raised meanwhile. */
    int await(Flight &flight, int patience_ms, Failure *failure);
    bool is_over(const Flight &flight) const;
    bool is_fork() const { return born != forks(); }
    void check_fork() const             /* throws in a fork of the rank */
    {
        if (is_fork())
            check();
    }

    /* Takes over what nobody waits for. */
    void leave(std::unique_ptr<Flight> flight);
    /* at the end of the program; how many had to be ended */
    int  see_off_left(std::chrono::steady_clock::time_point until);

    void abort(const std::string &why);
    void set_timeout(std::chrono::milliseconds timeout);
    /* Later operations have so much more time, until the first of them has ended. */
    void extend(std::chrono::milliseconds more);
    /* of an operation that is about to be started; given 0: the comm's */
    int  deadline_ms(int given, Flight *flight);
    void close() { is_closed = true; }  /* nothing is started any more; what is under way goes on */

    /* of these ranks of this one, by those alone */
    std::shared_ptr<Comm> create(const std::vector<int> &ranks);
    Failure failed(int error, bool message);
    uint64_t started() const { return number; }
    int error();                /* of what broke it; 0: it is whole, as far as this rank knows */
    tutti_comm *get() const { return comm; } /* for what any thread may ask: figures, who is gone */

    const uint64_t born = forks();
    const int rank, size;
    const std::shared_ptr<World> world;
    const std::vector<int> members;     /* their ranks in the world */
    const std::shared_ptr<Hooks> hooks = std::make_shared<Hooks>();
    const std::shared_ptr<Line> line = std::make_shared<Line>();

private:
    void check() const;
    void reap();
    std::mutex door;
    tutti_comm *const comm;
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
    Failure cause;              /* what broke it: the first failure that is not of an earlier one */
};

/* At the end of the program: a moment for what is under way on all comms, then the threads that
 * complete futures end. Without the interpreter's lock. Whether nothing had to be given up. */
bool comms_leave();

/* From now on; of a time beyond what the clock counts to: never. */
std::chrono::steady_clock::time_point deadline_after(std::chrono::milliseconds);

/* as the library has them: 0 the default, at most INT_MAX */
int milliseconds(std::chrono::milliseconds);
/* Of a group. torch gives each one 30 minutes of which nobody has spoken: those are the library's
   default, a wait with them may be part of a cycle. */
int group_limit(std::chrono::milliseconds);
void comm_setup();

}

#endif
