/* Job: operations of a group whose ranks are on several hosts, in the library's dialect: each is
 *      started by arguments like those of the library's function, and its handle waited for. On
 *      each host the ranks work together through their arena; the first of them, the leader, does
 *      the rest with the other leaders (leaders.h).
 * Owns: the operations under way, in the order of their calls, and the thread that does them when
 *       nobody waits; the first failure, which all later operations report.
 * Never: talks to another host itself. Touches Python. */
#ifndef TORCH_HOSTS_H
#define TORCH_HOSTS_H

#include <condition_variable>
#include <deque>
#include <map>
#include <thread>

#include "torch/board.h"
#include "torch/failure.h"
#include "torch/leaders.h"

namespace tutti {

/* Where the ranks of a group are. A host's ranks ascend; the first one leads. */
struct Hosted {
    std::vector<std::vector<int>> ranks;        /* of each host */
    std::vector<std::string> names;
    std::vector<int> host, place;               /* of each rank: its host, its rank there */
    int rank = 0, mine = 0;                     /* this rank, its host */
    Hosted(std::vector<std::vector<int>> ranks, std::vector<std::string> names, int rank);
    const std::vector<int> &here() const { return ranks[(size_t)mine]; }
    bool leads() const { return here()[0] == rank; }
    int size() const { return (int)host.size(); }
    int number() const { return (int)ranks.size(); }
    std::string named(int h) const;             /* "host b (ranks 2, 3)" */
};

struct Failed { Failure failure; };             /* thrown within an operation */
struct Step;

/* An operation under way. Also held by the thread that does it, which may be left behind. */
struct Job {
    const char *site = "?";
    std::function<void(Job &)> body;
    std::chrono::steady_clock::time_point deadline;
    tutti_work *inner = nullptr;        /* the library's: a message within the host */
    tutti_message *got = nullptr;
    std::function<void()> landed;       /* copies what has come to where it belongs */
    int peer = -1;                      /* of a message between hosts; else -1 */
    int (*asked)(void *) = nullptr;     /* of the main thread, if it does this job */
    uint64_t number = 0;                /* among the group's operations of all ranks */

    void finish(Failure failure);       /* the first call counts */
    bool await(std::chrono::milliseconds most);         /* true: it has ended */
    Failure ended();
    std::chrono::milliseconds left() const;

private:
    std::mutex lock;
    std::condition_variable over;
    bool done = false;
    Failure failure;
};

class Hosts {
public:
    using Clock = std::chrono::steady_clock;

    /* local: the comm of this host's ranks, in order; whole: the comm of their world, whose store
     * is used. leaders: null but on the leader. name: of the group, the same on all its ranks. */
    Hosts(Hosted where, const std::string &name, tutti_comm *whole, tutti_comm *local,
          std::unique_ptr<Leaders> leaders, std::unique_ptr<Messenger> messenger,
          std::shared_ptr<Board> board);
    ~Hosts();
    const Hosted where;

    int barrier(const char *, const tutti_call *);
    int broadcast(const char *, void *, size_t, tutti_type, int root, const tutti_call *);
    int reduce(const char *, const void *, void *, size_t, tutti_type, tutti_op, int root,
               const tutti_call *);
    int all_reduce_many(const char *, const void *const[], void *const[], const size_t[], int,
                        tutti_type, tutti_op, const tutti_call *);
    int reduce_scatter(const char *, const void *, void *, size_t, tutti_type, tutti_op,
                       const tutti_call *);
    int reduce_scatter_v(const char *, const void *const[], const size_t[], void *, tutti_type,
                         tutti_op, const tutti_call *);
    int all_gather(const char *, const void *, void *, size_t, tutti_type, const tutti_call *);
    int all_gather_v(const char *, const void *, size_t, void *const[], const size_t[], tutti_type,
                     const tutti_call *);
    int gather(const char *, const void *, void *, size_t, tutti_type, int root,
               const tutti_call *);
    int gather_v(const char *, const void *, size_t, void *const[], const size_t[], tutti_type,
                 int root, const tutti_call *);
    int scatter_v(const char *, const void *const[], const size_t[], void *, size_t, tutti_type,
                  int root, const tutti_call *);
    int all_to_all_v(const char *, const void *const[], const size_t[], void *const[],
                     const size_t[], tutti_type, const tutti_call *);
    int send(const char *, const void *, size_t, tutti_type, int to, int tag, const tutti_call *);
    int recv(const char *, void *, size_t, tutti_type, int from, int tag, tutti_message *,
             const tutti_call *);

    /* As the library's: the handle is gone when its end has been reported. *failure: of a negative
     * result. patience_ms 0 or negative: until the end. asked: as tutti_options.interrupt. */
    int  wait(tutti_work *, int patience_ms, int (*asked)(void *), Failure *failure);
    bool is_over(const tutti_work *);
    /* What has been started goes on although its caller does something else: it has not come to
     * wait yet. Without this call it may begin when it is waited for. */
    void go_on();
    void abort(const std::string &why);
    void set_timeout(int ms) { timeout_ms = ms; }
    Failure cause();                    /* what broke the group; error 0: nothing has */
    Failure refusal();                  /* why the last call that was refused was */

private:
    friend struct Step;                 /* step.h: what the parts of one operation use */
    using Handle = std::shared_ptr<Job>;
    int  fold_all(const char *what, int root, std::shared_ptr<char[]> kept, const char *site,
                  const void *const[], void *const[], const size_t[], int, tutti_type, tutti_op,
                  const tutti_call *);
    Failure mismatched(const std::string &report);
    struct Lanes {
        std::mutex lock;
        std::map<std::pair<int, int>, std::deque<Handle>> of;   /* receives: sender, tag */
    };
    int  put(const char *site, const tutti_call *, std::function<void(Step &)> body);
    int  put_inner(Handle, const tutti_call *, int r, tutti_work *inner);
    Handle job(const char *site, const tutti_call *);
    int  refuse_call(const char *site, const std::string &why);
    static int handed(const Handle &, const tutti_call *);
    void serve();
    void run(const Handle &);
    bool helped(const Handle &, int (*asked)(void *));  /* this thread has done it */
    Failure message_failure(Job &, const Failure &seen);
    Failure spread(Failure, bool own);  /* the first failure, told to this host; own: to all */
    Failure local_failure(int error);
    Failure step_failure(const Job &, int error);       /* a step of this host has failed */
    void tell_locally(const Failure &);
    int  heard_locally(Failure *);
    void pulse(Job &, int turn);        /* in a wait for other hosts */
    bool leader_waited(const Job &);
    enum class Says { HERE, NOTHING };  /* to other hosts: that this one answers */
    Failure blamed(const Job &, const Failure &seen, Says = Says::HERE);

    tutti_comm *const whole, *const local;
    const std::unique_ptr<Leaders> leaders;
    const std::shared_ptr<Messenger> messenger;
    const std::shared_ptr<Board> board;
    const std::shared_ptr<Lanes> lanes;
    std::atomic<int> timeout_ms{ 0 };
    const std::string key;              /* of this group's failure, in the job's store */

    std::mutex lock;
    std::condition_variable changed;
    std::deque<Handle> queue;           /* the first one may be running */
    uint64_t numbered = 0;              /* operations of all ranks, so far */
    std::vector<std::weak_ptr<Job>> messages;           /* between hosts, under way */
    bool running = false, stopping = false;
    Failure first, refused;             /* under the lock */
    std::thread server;
};

}

#endif
