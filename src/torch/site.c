/* The usual way to find the line of a thread needs the interpreter's lock, so each call would wait
 * for the thread that holds it. But only a thread itself changes its frames: they do not change
 * while it runs here. The frames hold their code objects, and a code object's file name and table
 * of lines never change. So they are read in place, with the headers of the same interpreter for
 * which this is compiled. Nothing is counted, kept or written. If the layout is not known (Python
 * 3.14 and later), every line is "?". site_check() compares once with the interpreter's own answer.
 *
 * Source: the frames of CPython 3.10 (frameobject.h), and of 3.11 to 3.13
 * (internal/pycore_frame.h).
 * Cost: a few loads a frame for places seen before, which a table of this thread holds; else a walk
 *       through a table of lines. */
#define PY_SSIZE_T_CLEAN
#define Py_BUILD_CORE 1
#include <Python.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if PY_VERSION_HEX < 0x030B0000
#include <frameobject.h>
#elif PY_VERSION_HEX < 0x030E0000
#include <internal/pycore_frame.h>
#endif

#include "torch/site.h"

enum { TEXT_MAX = 112, PLACES = 64, FOLDERS = 6, TEXTS = 16384, FRAMES_MOST = 400 };

/* ---- frames ---- */

/* offset: bytes into the code; next: the caller's frame */
struct frame { PyCodeObject *code; int offset; const void *next; };

#if PY_VERSION_HEX < 0x030B0000
static const void *frame_first(PyThreadState *state) { return state->frame; }

static int frame_read(const void *at, struct frame *f)
{
    const PyFrameObject *frame = at;
    *f = (struct frame){ frame->f_code, frame->f_lasti * (int)sizeof(_Py_CODEUNIT), frame->f_back };
    return f->code && frame->f_lasti >= 0;
}
#elif PY_VERSION_HEX < 0x030E0000
#if PY_VERSION_HEX < 0x030D0000
static const void *frame_first(PyThreadState *state)
{
    return state->cframe ? state->cframe->current_frame : NULL;
}

static PyCodeObject *frame_code(const _PyInterpreterFrame *frame) { return frame->f_code; }
#else
static const void *frame_first(PyThreadState *state) { return state->current_frame; }
static PyCodeObject *frame_code(const _PyInterpreterFrame *frame)
{
    PyObject *it = frame->f_executable;
    return it && Py_IS_TYPE(it, &PyCode_Type) ? (PyCodeObject *)it : NULL;
}
#endif

static int frame_read(const void *at, struct frame *f)
{
    _PyInterpreterFrame *frame = (_PyInterpreterFrame *)(uintptr_t)at;
    *f = (struct frame){ frame_code(frame), 0, frame->previous };
    if (!f->code || _PyFrame_IsIncomplete(frame))
        return 0;
    f->offset = _PyInterpreterFrame_LASTI(frame) * (int)sizeof(_Py_CODEUNIT);
    return 1;
}
#else
static const void *frame_first(PyThreadState *state)
{
    (void)state;
    return NULL;
}

static int frame_read(const void *at, struct frame *f)
{
    *f = (struct frame){ NULL, 0, NULL };
    return at != NULL;
}
#endif

/* ---- texts ---- */

static char folders[FOLDERS][1024];
static int  folders_used;
static int  told_apart = 1;                             /* 0: site_check() has found a fault */

static pthread_mutex_t texts_lock = PTHREAD_MUTEX_INITIALIZER;
static char *texts[TEXTS];                      /* by their hash; under the lock, never freed */
static int   texts_used;

/* The name in UTF-8, cut at the front. The object's own UTF-8 text is not used: another thread may
 * be making it now. */
static void name_utf8(PyObject *name, char *out, size_t room)
{
    Py_ssize_t n = PyUnicode_GET_LENGTH(name);
    int kind = PyUnicode_KIND(name);
    const void *data = PyUnicode_DATA(name);
    size_t used = 0;
    for (Py_ssize_t i = n > 900 ? n - 900 : 0; i < n && used + 5 < room; i++) {
        Py_UCS4 c = PyUnicode_READ(kind, data, i);
        if (c < 0x80)
            out[used++] = (char)c;
        else {
            int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
            out[used++] = (char)((0xF00 >> more & 0xFF) | c >> 6 * more);
            for (int k = more - 1; k >= 0; k--)
                out[used++] = (char)(0x80 | (c >> 6 * k & 0x3F));
        }
    }
    out[used] = 0;
}

static const char *text_keep(const char *text)
{
    uint32_t hash = 2166136261u;
    for (const char *at = text; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 16777619u;
    const char *kept = "?";
    pthread_mutex_lock(&texts_lock);
    for (uint32_t i = hash; ; i++) {
        char **slot = &texts[i % TEXTS];
        if (!*slot && texts_used < TEXTS * 3 / 4 && (*slot = strdup(text)))
            texts_used++;
        if (!*slot)
            break;
        if (strcmp(*slot, text) == 0) {
            kept = *slot;
            break;
        }
    }
    pthread_mutex_unlock(&texts_lock);
    return kept;
}

static const char *text_make(const char *path, int line)
{
    char text[TEXT_MAX];
    const char *from = path + strlen(path);
    for (int slashes = 0; from > path; from--)
        if (from[-1] == '/' && ++slashes == 2)
            break;
    if (strlen(from) > TEXT_MAX - 12)
        from += strlen(from) - (TEXT_MAX - 12);
    while (((unsigned char)*from & 0xC0) == 0x80)       /* not in the middle of a character */
        from++;
    snprintf(text, sizeof text, "%s:%d", from, line);
    return text_keep(text);
}

/* ---- places ---- */

/* What was found for a place. A code object may be freed and another one made at its address: then
 * its file name or its table has another address.
 * text: NULL: the frame is passed over. */
static __thread struct sited {
    const void *code, *name, *table;
    int offset;
    const char *text;
} places[PLACES];

#if PY_VERSION_HEX < 0x030B0000
static const void *table_of(const PyCodeObject *code) { return code->co_code; }
#else
static const void *table_of(const PyCodeObject *code) { return code->co_linetable; }
#endif

static int is_passed_over(const char *path)
{
    for (int i = 0; i < folders_used; i++)
        if (strncmp(path, folders[i], strlen(folders[i])) == 0)
            return 1;
    return path[0] == '<';                              /* <frozen …>, <string>: generated code */
}

static const char *place_text(const struct frame *f)
{
    PyCodeObject *code = f->code;
    uintptr_t mixed = (uintptr_t)code >> 4 ^ (uintptr_t)code >> 12 ^ (uintptr_t)f->offset >> 1;
    struct sited *p = &places[mixed % PLACES];
    if (p->code == code && p->offset == f->offset && p->name == code->co_filename
        && p->table == table_of(code))
        return p->text;
    char path[1024];
    name_utf8(code->co_filename, path, sizeof path);
    *p = (struct sited){ code, code->co_filename, table_of(code), f->offset, NULL };
    if (!is_passed_over(path))
        p->text = text_make(path, PyCode_Addr2Line(code, f->offset));
    return p->text;
}

const char *site_here(void)
{
    PyThreadState *state = told_apart && Py_IsInitialized() ? PyGILState_GetThisThreadState()
                                                            : NULL;
    const void *at = state ? frame_first(state) : NULL;
    for (int i = 0; at && i < FRAMES_MOST; i++) {
        struct frame f;
        if (frame_read(at, &f)) {
            const char *text = place_text(&f);
            if (text)
                return text;
        }
        at = f.next;
    }
    return "?";
}

void site_pass_over(const char *folder)
{
    if (folders_used < FOLDERS && strlen(folder) < sizeof folders[0])
        strcpy(folders[folders_used++], folder);
}

int site_check(void)
{
    PyThreadState *state = PyGILState_GetThisThreadState();
    PyObject *theirs = (PyObject *)PyEval_GetFrame();
    Py_XINCREF(theirs);
    int agree = theirs != NULL, depth = 0;
    const void *at = state ? frame_first(state) : NULL;
    for (; agree && theirs && theirs != Py_None && at && depth < FRAMES_MOST; depth++) {
        struct frame f;
        while (at && !frame_read(at, &f))
            at = f.next;
        PyCodeObject *code = PyFrame_GetCode((PyFrameObject *)theirs);
        agree = at && f.code == code
            && PyCode_Addr2Line(code, f.offset) == PyFrame_GetLineNumber((PyFrameObject *)theirs);
        Py_DECREF(code);
        PyObject *back = PyObject_GetAttrString(theirs, "f_back");
        Py_DECREF(theirs);
        theirs = back;
        at = f.next;
    }
    Py_XDECREF(theirs);
    PyErr_Clear();
    told_apart = agree && depth > 0;
    return told_apart;
}
