/* Job: what hosts tell each other of a failure, beside the engine, which may be what failed: a note
 *      of each host, in the store by which the group has met.
 * Owns: a connection of its own to that store, and the thread that uses it.
 * Never: makes anybody wait for a store that does not answer. */
#ifndef TORCH_BOARD_H
#define TORCH_BOARD_H

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "torch/failure.h"

namespace tutti {

/* own: it happened on that host. Else that host only saw that others did not answer. */
struct Note { bool own = false; Failure failure; };

std::string note_text(const Note &);
Note note_of(const std::string &text);

class Board {
public:
    Board(const c10::intrusive_ptr<c10d::Store> &store, int hosts, int mine);
    ~Board();
    /* Waits at most so long until it stands there. */
    void post(const Note &, std::chrono::milliseconds most);
    /* Has the thread look. What has been found by now: a note for each host. Waits for nobody. */
    std::vector<std::optional<Note>> look();
    /* True: the store has answered a look since this call, within this time. */
    bool looked(std::chrono::milliseconds most);

private:
    struct State;
    static void serve(std::shared_ptr<State> state);
    const std::shared_ptr<State> state;
};

}

#endif
