/* What the hook knows of a code object, kept in its extra slot and freed with it. */
#ifndef DYNACAP_HOOK_CODE_CACHE_H
#define DYNACAP_HOOK_CODE_CACHE_H

#include "cpython.h"

typedef struct {
    unsigned never;      /* the generation of marks in which it was marked; 0: not marked */
    int hidden;          /* left out of tracebacks */
    PyCodeObject *shown; /* owned: finishes a frame that appears in tracebacks; NULL until needed */
    PyCodeObject *quiet; /* owned: finishes a frame that does not */
} CodeNote;

int code_cache_init(void);

/* The note of a code object (borrowed), NULL where it has none. No error is set. */
CodeNote *code_note_find(PyCodeObject *code);

/* The note of a code object (borrowed), made where it has none; NULL with an error set. */
CodeNote *code_note(PyCodeObject *code);

int code_is_never(const CodeNote *note);
int code_mark_never(PyCodeObject *code);
void code_clear_marks(void);

/* A code object with the locals, names and place of `code` (borrowed) whose only act is to return
 * the top of its stack. Borrowed from the note; NULL with an error set. Frames that run the shown
 * one appear in tracebacks, frames that run the quiet one do not. */
PyCodeObject *code_shown_return(PyCodeObject *code);
PyCodeObject *code_quiet_return(PyCodeObject *code);

#endif
