/* A failure has one origin. The rank that meets it writes it into the arena, for the ranks of its
 * host, and on the board, for the other hosts; then it breaks the comm of its host. A leader in a
 * wait for others looks at both. If nobody says what happened, the hosts that say nothing are to
 * blame: they are named. Who only misses the own leader, which has waited for other hosts until the
 * deadline, looks for who is to blame itself: a leader that is late is not.
 * Cost: while a leader waits, a look at the arena each 50 ms, at the board each 200 ms. */
#include "torch/hosts.h"

#include <errno.h>
#include <string.h>

#include <algorithm>

namespace tutti {

using namespace std::chrono_literals;
using Ms = std::chrono::milliseconds;

static const Ms TELL_MOST = 450ms;      /* for a note to be written, or read */
static const Ms LEADER_AT_IT = 1s;      /* before the deadline: it has not stood still */
static const int LOOK_EVERY = 4;        /* slices of a wait between looks at the board */

void Hosts::tell_locally(const Failure &f)
{
    std::string text = note_text({ true, f });
    tutti_compare_set_at("?", key.c_str(), nullptr, 0, text.data(),
                         std::min(text.size(), (size_t)64 << 10), whole);
    std::string why = f.report.substr(0, std::min(f.report.find('\n'), (size_t)110));
    tutti_comm_abort_at("?", local, why.c_str());
}

/* 0: a rank of this host has written what failed. -ECANCELED: nobody has, and their comm is
 * broken. */
int Hosts::heard_locally(Failure *f)
{
    int r = 0;
    std::string text((size_t)64 << 10, 0);
    tutti_call brief{};
    brief.timeout_ms = 1;
    for (tutti_comm *comm : { local, whole }) {
        size_t n = text.size();
        int now = tutti_get_at("?", key.c_str(), text.data(), &n, comm, &brief);
        if (now == 0) {
            *f = note_of(text.substr(0, n)).failure;
            return 0;
        }
        if (comm == local)
            r = now;
        if (now != -ECANCELED)
            break;
    }
    return r;
}

Failure Hosts::local_failure(int error)
{
    Failure f;
    if (heard_locally(&f) == 0)
        return spread(f, false);
    f = failure_of(error, local);
    for (int &r : f.ranks)
        r = where.here()[(size_t)r];
    if (error == -ECANCELED && !f.ranks.empty())
        f.error = -EOWNERDEAD;
    f.report = c10::str("on ", where.named(where.mine), ", there numbered from 0: ", f.report);
    return spread(f, true);
}

/* What a leader leaves in its host's store while it waits for other hosts. */
struct Waiting {
    uint64_t number;                    /* of the operation */
    Hosts::Clock::rep at;
};

/* The leader has waited for other hosts in this operation, and was at it shortly before the
 * deadline, or later. */
bool Hosts::leader_waited(const Job &job)
{
    Waiting it{};
    size_t n = sizeof it;
    tutti_call brief{};
    brief.timeout_ms = 1;
    return tutti_get_at("?", (key + "/waits").c_str(), &it, &n, whole, &brief) == 0
        && n == sizeof it && it.number == job.number
        && Clock::duration(it.at) > job.deadline.time_since_epoch() - LEADER_AT_IT;
}

Failure Hosts::step_failure(const Job &job, int error)
{
    if (error == -ETIMEDOUT && !where.leads() && leader_waited(job)) {
        Failure seen;
        seen.error = error;
        Failure f = blamed(job, seen, Says::NOTHING);
        if (f.error)
            return spread(f, false);
    }
    return local_failure(error);
}

Failure Hosts::spread(Failure f, bool own)
{
    std::vector<std::weak_ptr<Job>> letters;
    {
        std::lock_guard<std::mutex> hold(lock);
        if (first.error)
            return first;
        first = f;
        letters.swap(messages);
    }
    tell_locally(f);
    if (own)
        board->post({ true, f }, TELL_MOST);
    if (leaders)
        leaders->abort();
    messenger->abort();
    for (auto &it : letters)
        if (auto job = it.lock())
            job->finish(f);
    return f;
}

void Hosts::abort(const std::string &why)
{
    Failure f;
    f.error = -ECANCELED;
    f.report = c10::str("rank ", where.rank, " on ", where.named(where.mine), " aborted: ", why);
    spread(f, true);
}

/* Throws what ends the wait of a leader for the others. */
void Hosts::pulse(Job &job, int turn)
{
    Failure f;
    const Waiting here{ job.number, Clock::now().time_since_epoch().count() };
    tutti_set_at("?", (key + "/waits").c_str(), &here, sizeof here, whole);
    int r = heard_locally(&f);
    if (r == 0)
        throw Failed{ f };
    if (r == -ECANCELED && tutti_failed(local, nullptr, 0) == 0) {      /* why will be heard */
        f.error = -ETIMEDOUT;
        throw Failed{ blamed(job, f) };
    }
    if (r == -ECANCELED || (r == -EOWNERDEAD && where.here().size() > 1))
        throw Failed{ local_failure(r) };
    f = cause();
    if (f.error)
        throw Failed{ f };
    if (job.asked && job.asked(nullptr)) {
        abort("interrupted");
        throw Failed{ cause() };
    }
    if (job.deadline <= Clock::now()) {
        f.error = -ETIMEDOUT;
        throw Failed{ blamed(job, f) };
    }
    if (turn % LOOK_EVERY == LOOK_EVERY - 1)
        for (auto &note : board->look())
            if (note)
                throw Failed{ note->own ? note->failure : blamed(job, note->failure) };
}

/* Who is to blame for an operation that failed between hosts: what a rank of this host has found,
 * or a host says, else the hosts that say nothing. seen: what this host saw. Who says nothing
 * itself asks in place of the leader; error 0: the leader alone does not answer. */
Failure Hosts::blamed(const Job &job, const Failure &seen, Says says)
{
    if (says == Says::HERE)
        board->post({ false, seen }, 0ms);
    bool heard = false;
    std::vector<std::optional<Note>> notes;
    auto end = Clock::now() + TELL_MOST;
    do {
        heard |= board->looked(50ms);
        notes = board->look();
        size_t silent = says == Says::NOTHING && !notes[(size_t)where.mine];
        Failure known;
        if (heard_locally(&known) == 0)
            return known;
        for (int h = 0; h < where.number(); h++) {
            const auto &note = notes[(size_t)h];
            if (note && note->own && h != where.mine)
                return note->failure;
            silent += h != where.mine && !note;
        }
        if (!silent)
            break;
    } while (Clock::now() < end);
    Failure f;
    f.error = seen.error;
    std::string who;
    for (int h = 0; h < where.number(); h++)
        if (h != where.mine && !notes[(size_t)h]) {
            who += (who.empty() ? "" : ", ") + where.named(h);
            f.ranks.insert(f.ranks.end(), where.ranks[(size_t)h].begin(),
                           where.ranks[(size_t)h].end());
        }
    const char *store = heard ? "" : "; nor does the store in which the group met answer";
    if (who.empty() && says == Says::NOTHING && !notes[(size_t)where.mine])
        f.error = 0;
    else if (who.empty())
        f.report = c10::str("at ", job.site, ": hosts wait for each other, all of them answer: ",
                            seen.report.empty() ? "the deadline has passed" : seen.report);
    else if (seen.error == -ETIMEDOUT)
        f.report = c10::str("at ", job.site, ": no answer from ", who, " before the deadline",
                            store, ": that host, its leader or the link to it stands still");
    else
        f.report = c10::str("at ", job.site, ": lost the connection to ", who, store, " (",
                            seen.report, ")");
    return f;
}

}
