/* Checks every call of a public function, in every test: errno, the signal mask, the state and type
 * of cancellation and the floating-point modes must be the same afterwards. The linker sends each
 * call through here (--wrap; the names come from the headers). The call's return address is kept
 * here, so that arguments and results of any type pass unchanged. If longjmp leaves a call, the
 * next call that returns removes it.
 *
 * A difference is printed and ends the program. The mask costs a system call: it is checked in each
 * 16th call. */
#include "support/caller_state_names.h"

#ifdef CALLER_STATE_NAMES

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEPTH = 64, MARK = 0x5a5a, MASK_EVERY = 16, SSE_FLAGS = 0x3f };

struct state { int cancel, type; unsigned sse; uint16_t x87; sigset_t mask; };
struct call {
    const char *name;
    uintptr_t stack;
    void *back;
    int error;
    bool masked;
    struct state state;
};

static _Thread_local struct call calls[DEPTH];
static _Thread_local int depth;
static _Thread_local unsigned count;

static void look(struct state *s, bool mask)
{
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &s->cancel);
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &s->type);
    if (s->type != PTHREAD_CANCEL_DEFERRED)
        pthread_setcanceltype(s->type, NULL);
    pthread_setcancelstate(s->cancel, NULL);
    __asm__ volatile("stmxcsr %0" : "=m"(s->sse));
    __asm__ volatile("fnstcw %0" : "=m"(s->x87));
    s->sse &= ~(unsigned)SSE_FLAGS;
    if (mask)
        pthread_sigmask(SIG_SETMASK, NULL, &s->mask);
}

static void differs(const struct call *call, const char *what, long was, long is)
{
    char line[256];
    int n = snprintf(line, sizeof line, "%s: the caller's %s was %ld, is %ld\n", call->name, what,
                     was, is);
    if (write(STDERR_FILENO, line, (size_t)n) == n || true)
        abort();
}

__attribute__((visibility("hidden"))) void caller_state_before(const char *name, uintptr_t stack,
                                                               void *back)
{
    int error = errno;
    while (depth > 0 && calls[depth - 1].stack <= stack)             /* left by longjmp */
        depth--;
    if (depth == DEPTH)
        abort();
    struct call *call = &calls[depth++];
    *call = (struct call){
        .name = name, .stack = stack, .back = back, .error = error,
        .masked = ++count % MASK_EVERY == 0
    };
    look(&call->state, call->masked);
    errno = MARK;
}

__attribute__((visibility("hidden"))) void *caller_state_after(uintptr_t stack)
{
    int error = errno;
    while (depth > 0 && calls[depth - 1].stack < stack)
        depth--;
    if (depth == 0 || calls[depth - 1].stack != stack)
        abort();
    const struct call *call = &calls[--depth];
    struct state now = { 0 };
    look(&now, call->masked);
    if (error != MARK)
        differs(call, "errno", MARK, error);
    if (now.cancel != call->state.cancel || now.type != call->state.type)
        differs(call, "cancellation", call->state.cancel * 16 + call->state.type,
                now.cancel * 16 + now.type);
    if (now.sse != call->state.sse || now.x87 != call->state.x87)
        differs(call, "floating-point modes", (long)call->state.sse << 16 | call->state.x87,
                (long)now.sse << 16 | now.x87);
    for (int s = 1; call->masked && s < NSIG; s++)
        if (sigismember(&now.mask, s) != sigismember(&call->state.mask, s))
            differs(call, "signal mask, at the signal", s, s);
    errno = call->error;
    return call->back;
}

/* At entry the stack is 8 off a multiple of 16. The six argument registers are saved, and rax, the
   number of vector registers in use; vector registers hold no arguments of these functions. */
__asm__(".text\n"
        ".macro KEPT name\n"
        ".globl __wrap_\\name\n"
        ".hidden __wrap_\\name\n"
        ".type __wrap_\\name, @function\n"
        "__wrap_\\name:\n"
        "    push %rdi\n"
        "    push %rsi\n"
        "    push %rdx\n"
        "    push %rcx\n"
        "    push %r8\n"
        "    push %r9\n"
        "    push %rax\n"
        "    lea 1f(%rip), %rdi\n"
        "    lea 56(%rsp), %rsi\n"
        "    mov 56(%rsp), %rdx\n"
        "    call caller_state_before\n"
        "    pop %rax\n"
        "    pop %r9\n"
        "    pop %r8\n"
        "    pop %rcx\n"
        "    pop %rdx\n"
        "    pop %rsi\n"
        "    pop %rdi\n"
        "    lea 2f(%rip), %r11\n"
        "    mov %r11, (%rsp)\n"
        "    jmp __real_\\name\n"
        "2:  push %rax\n"
        "    push %rdx\n"
        "    lea 8(%rsp), %rdi\n"
        "    call caller_state_after\n"
        "    mov %rax, %r11\n"
        "    pop %rdx\n"
        "    pop %rax\n"
        "    jmp *%r11\n"
        "1:  .asciz \"\\name\"\n"
        ".endm\n" CALLER_STATE_NAMES);

#else
typedef int caller_state_is_for_x86;
#endif
