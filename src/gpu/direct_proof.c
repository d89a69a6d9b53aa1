/* Between opening and saying so: memory of another GPU is believed only when it has been read
 * (proof.h). A rank offers its page where more than one GPU may be there. Questions are asked one
 * after another; each takes some 20 us, once for each pair of devices. */
#include "gpu/direct.h"

#include "coll/coll.h"
#include "gpu/ipc_import.h"
#include "gpu/streams.h"
#include "os/say.h"

#include <errno.h>
#include <stdlib.h>

static bool others_may_be(void)
{
    const struct driver *driver;
    return driver_open(&driver, NULL) == 0
        && (driver->devices > 1 || getenv("CUDA_VISIBLE_DEVICES") != NULL);
}

void direct_offer_proof(struct coll *c, struct ipc_export *share, struct card *card)
{
    struct driver_pointer page;
    char unsaid[PROOF_WORDS];
    struct text why = TEXT_IN(unsaid);
    text_clear(&why);
    card->proof = (struct lent){ .length = 0 };
    if ((card->send.length || card->staging.length) && others_may_be()
        && (proof_page(c->comm->world, c->gpu.call->gpu, &page, &card->nonce, &why) < 0
            || direct_lend(c, share, &page, PROOF_BYTES, &card->proof, &why) < 0))
        card->proof.length = 0;
}

/* Once for each pair of devices that is found to lie: on stderr, and for tutti_explain. */
static void warn(struct coll *c, const char *words)
{
    char line[600];
    struct text t = TEXT_IN(line);
    text_clear(&t);
    text_add(&t, "tutti: rank %u, ", c->comm->watch.me);
    gpu_named(c->gpu.call->gpu, &t);
    text_add(&t, "%s; what they give each other goes through host memory\n", words);
    say(line, t.used);
    comm_explain(c->comm, "%.*s", (int)(t.used - 1), line);
}

static void close_page(struct coll *c, bool lost)
{
    struct direct *d = c->gpu.call->direct;
    struct ipc_import *handles = ipc_export_handles(ipc_export_if(c->comm->world));
    uint32_t owner = watch_world_rank(&c->comm->watch, d->proving);
    if (d->page_open && lost)
        ipc_import_lose(handles, owner, d->page.buffer);
    else if (d->page_open)
        ipc_import_give(handles, owner, d->page.buffer);
    d->page_open = false;
}

/* As direct_prove, of one rank. DIRECT_WAITS: the device has been asked, and has not answered. */
static int prove_one(struct coll *c, uint32_t p, const struct card *card, struct text *why)
{
    struct direct *d = c->gpu.call->direct;
    struct world *world = c->comm->world;
    bool lost = false;
    int r = proof_known(world, c->gpu.call->gpu, direct_device(c, card), why);
    if (r != 0)
        return r < 0 ? 0 : 1;
    if (!d->proof.gpu) {
        d->proving = p;
        d->page = card->proof;
        if (!d->page.length) {
            text_add(why, "it is on another GPU, and gives no page to try whether it can be read");
            return 0;
        }
        if (direct_take(c, p, &d->page, PROOF_BYTES, &d->page_at, &d->page_open, why) < 0)
            return 0;
        r = proof_ask(world, c->gpu.call->gpu, &d->proof, d->page_at, why);
        if (r < 0) {
            close_page(c, false);
            return r == -EIO ? r : 0;
        }
    }
    r = proof_look(world, &d->proof, direct_device(c, card), card->nonce, &lost, why);
    if (r == 0)
        return DIRECT_WAITS;
    close_page(c, lost);
    if (r == -ENOTSUP)
        warn(c, why->at);
    return r == -ENOTSUP ? 0 : r;
}

static bool is_open(const struct direct_peer *peer)
{
    return peer->send_open || peer->recv_open || peer->staging_open;
}

int direct_prove(struct coll *c, struct text *why)
{
    const struct direct *d = c->gpu.call->direct;
    for (uint32_t p = 0; p < c->comm->watch.size; p++) {
        const struct direct_peer *peer = &d->peers[p];
        const struct card *card = direct_card(c, p);
        if (p == c->comm->watch.me || !card || !is_open(peer))
            continue;
        text_clear(why);
        text_add(why, "rank %u's memory: ", p);
        int r = prove_one(c, p, card, why);
        if (r != 1)
            return r;
    }
    return 1;
}

void direct_prove_end(struct coll *c)
{
    if (c->gpu.call->direct->page_open)
        close_page(c, !proof_drop(c->comm->world, &c->gpu.call->direct->proof));
}
