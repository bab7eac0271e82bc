/* What differs between CPython versions, for the guard checker.
 *
 * Everything else in this folder is written against these names.
 */
#ifndef DYNACAP_GUARDS_CPYTHON_H
#define DYNACAP_GUARDS_CPYTHON_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#if PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x030F0000
#error "the guard checker in C knows CPython 3.11 to 3.14; the one in Python serves elsewhere"
#endif

#ifdef Py_GIL_DISABLED
#error "the guard checker in C relies on the GIL; the one in Python serves elsewhere"
#endif

/* ma_version_tag is deprecated from 3.12 on, for its users outside CPython. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define Py_BUILD_CORE 1
#undef _PyGC_FINALIZED /* 3.12 defines it in both sets of headers */
#include <internal/pycore_dict.h>
#undef Py_BUILD_CORE

/* Up to 3.12 each state of each dict has a number of its own (ma_version_tag), never used again.
 * The number is kept up on 3.13 too, but not by every store to an object's inline values. */
#if PY_VERSION_HEX < 0x030D0000
#define HAVE_DICT_TAG 1
static inline uint64_t
dict_tag(PyObject *dict)
{
    return ((PyDictObject *)dict)->ma_version_tag;
}
#else
#define HAVE_DICT_TAG 0
static inline uint64_t
dict_tag(PyObject *Py_UNUSED(dict))
{
    return 0;
}
#endif

/* From 3.12 on CPython tells of changes to a dict, so its state need not be looked at. */
#if PY_VERSION_HEX < 0x030C0000
#define HAVE_DICT_WATCHERS 0
static inline const void *
dict_tag_place(PyObject *dict)
{
    return &((PyDictObject *)dict)->ma_version_tag;
}
#else
#define HAVE_DICT_WATCHERS 1
static inline const void *
dict_tag_place(PyObject *Py_UNUSED(dict))
{
    return NULL;
}
#endif

#pragma GCC diagnostic pop

_Static_assert(sizeof(void *) == sizeof(uint64_t), "what is remembered are words of 64 bits");

/* Whether the dict's values may lie in the object whose attributes they are. */
static inline int
dict_has_inline_values(PyObject *dict)
{
    return ((PyDictObject *)dict)->ma_values != NULL;
}

/* Whether looking a string up in the dict can compare it with nothing but exact strings. */
static inline int
dict_has_only_str_keys(PyObject *dict)
{
    return DK_IS_UNICODE(((PyDictObject *)dict)->ma_keys);
}

/* The number of a type's state; 0 where it has none.  Changes with its bases, too. */
static inline uint64_t
type_tag(PyTypeObject *type)
{
#if PY_VERSION_HEX < 0x030D0000
    if (!(type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG)) {
        return 0;
    }
#endif
    return type->tp_version_tag;
}

/* Where that number lies, with bits behind it that do not change. */
static inline const void *
type_tag_place(PyTypeObject *type)
{
    return &type->tp_version_tag;
}

/* A new reference to a class's own dict. */
static inline PyObject *
type_own_dict(PyTypeObject *type)
{
#if PY_VERSION_HEX < 0x030C0000
    return Py_XNewRef(type->tp_dict);
#else
    return PyType_GetDict(type);
#endif
}

#endif
