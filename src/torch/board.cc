/* A store may hang when its host is gone: a request over TCP has no end of its own. So a thread
 * talks to it, over a connection of its own, and is left behind if it does not come back. Cost:
 * nothing until something fails or a leader has waited for a while; then, for each look, a request
 * for each host. */
#include "torch/board.h"

#include <condition_variable>
#include <mutex>
#include <sstream>
#include <thread>

namespace tutti {

std::string note_text(const Note &note)
{
    std::ostringstream text;
    text << note.own << ' ' << note.failure.error << ' ' << note.failure.ranks.size();
    for (int r : note.failure.ranks)
        text << ' ' << r;
    text << '\n' << note.failure.report;
    return text.str();
}

Note note_of(const std::string &text)
{
    std::istringstream in(text);
    Note note;
    size_t n = 0;
    in >> note.own >> note.failure.error >> n;
    for (int r; n > 0 && in >> r; n--)
        note.failure.ranks.push_back(r);
    in.ignore(1);
    std::getline(in, note.failure.report, '\0');
    return note;
}

struct Board::State {
    c10::intrusive_ptr<c10d::Store> store;
    int hosts, mine;
    std::mutex lock;
    std::condition_variable asked, answered;
    bool begun = false, stop = false, look = false, posted = false;
    uint64_t looks = 0;
    std::optional<Note> mine_to_post;
    std::vector<std::optional<Note>> found;
};

Board::Board(const c10::intrusive_ptr<c10d::Store> &store, int hosts, int mine)
    : state(std::make_shared<State>())
{
    state->store = store->clone();
    state->hosts = hosts;
    state->mine = mine;
    state->found.resize((size_t)hosts);
}

Board::~Board()
{
    std::lock_guard<std::mutex> hold(state->lock);
    state->stop = true;
    state->asked.notify_all();
}

static std::string key_of(int host) { return "down/" + std::to_string(host); }

void Board::serve(std::shared_ptr<State> s)
{
    std::unique_lock<std::mutex> hold(s->lock);
    while (!s->stop) {
        if (!s->look && !s->mine_to_post) {
            s->asked.wait(hold);
            continue;
        }
        std::optional<Note> post = std::move(s->mine_to_post);
        s->mine_to_post.reset();
        s->look = false;
        auto known = s->found;
        hold.unlock();
        bool good = true;
        try {
            if (post)
                s->store->set(key_of(s->mine), note_text(*post));
            for (int h = 0; h < s->hosts; h++)
                if (!known[(size_t)h] && s->store->check({ key_of(h) }))
                    known[(size_t)h] = note_of(s->store->get_to_str(key_of(h)));
        } catch (const std::exception &) {              /* the store is gone */
            good = false;
        }
        hold.lock();
        s->found = std::move(known);
        s->posted |= post && good;
        s->looks += good;
        s->answered.notify_all();
        if (!good)
            s->asked.wait_for(hold, std::chrono::milliseconds(100));
    }
}

void Board::post(const Note &note, std::chrono::milliseconds most)
{
    std::unique_lock<std::mutex> hold(state->lock);
    state->mine_to_post = note;
    state->posted = false;
    if (!state->begun)
        std::thread(serve, state).detach();
    state->begun = true;
    state->asked.notify_all();
    state->answered.wait_for(hold, most, [&] { return state->posted; });
}

std::vector<std::optional<Note>> Board::look()
{
    std::lock_guard<std::mutex> hold(state->lock);
    if (!state->begun)
        std::thread(serve, state).detach();
    state->begun = true;
    state->look = true;
    state->asked.notify_all();
    return state->found;
}

bool Board::looked(std::chrono::milliseconds most)
{
    look();
    std::unique_lock<std::mutex> hold(state->lock);
    const uint64_t before = state->looks;
    return state->answered.wait_for(hold, most, [&] { return state->looks > before; });
}

}
