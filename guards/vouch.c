/* What is remembered as true, and how the next check is to know that it still is. */
#include "record.h"

int
vouch_word(Recorder *r, const void *place, uint64_t expected)
{
    Recall *made = r->made;
    if (made->nfacts == made->room) {
        Py_ssize_t room = 2 * made->room + 64;
        Fact *facts = PyMem_Resize(made->facts, Fact, room);
        if (facts == NULL) {
            r->failed = 1;
            return 0;
        }
        made->facts = facts;
        made->room = room;
    }
    made->facts[made->nfacts++] = (Fact){place, expected};
    return 1;
}

int
vouch_pointer(Recorder *r, const void *place, PyObject *expected)
{
    return vouch_word(r, place, (uintptr_t)expected);
}

int
vouch_operand(Recorder *r, const Operand *operand)
{
    if (operand->kind != BY_WEAKREF) {
        return 1;
    }
    PyWeakReference *weak = (PyWeakReference *)operand->obj;
    for (int i = 0; i < Py_MIN(r->nweak, KNOWN_WEAK); i++) {
        if (r->weak[i] == weak) {
            return 1;
        }
    }
    r->weak[r->nweak++ % KNOWN_WEAK] = weak;
    return vouch_pointer(r, &weak->wr_object, weak->wr_object);
}

/* Whether objects of this type stay of this type. */
static int
is_for_good(PyTypeObject *type)
{
    return (type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE) != 0 && type != &PyModule_Type;
}

static Voucher
type_voucher(Recorder *r, PyObject *value, Certainty certainty)
{
    if (certainty == OBJECT && is_for_good(Py_TYPE(value))) {
        return FOR_GOOD;
    }
    if (certainty == OBJECT && watch_object(value, r->made->pulse)) {
        return BY_TELLING;
    }
    int vouched = vouch_pointer(r, &value->ob_type, (PyObject *)Py_TYPE(value));
    return vouched ? BY_WORD : NOTHING_YET;
}

int
vouch_type(Recorder *r, int32_t at)
{
    if (r->typed[at] == NOTHING_YET) {
        r->typed[at] = type_voucher(r, r->seen[at], r->certainty[at]);
    }
    return r->typed[at] != NOTHING_YET;
}

int
vouch_dict(Recorder *r, PyObject *dict)
{
    const void *place = dict_tag_place(dict);
    return place != NULL ? vouch_word(r, place, dict_tag(dict)) : watch_dict(dict, r->made->pulse);
}

int
vouch_state(Recorder *r, int32_t at)
{
    PyObject *value = r->seen[at];
    if (r->vouched[at]) {
        return 1;
    }
    if (PyType_Check(value)) {
        uint64_t tag = type_tag((PyTypeObject *)value);
        const void *place = type_tag_place((PyTypeObject *)value);
        r->vouched[at] = tag != 0 && vouch_word(r, place, word_at(place, 0));
    }
    else if (PyDict_Check(value)) {
        int is_dict = r->program->nodes[at].step == STEP_INSTANCE_DICT || vouch_type(r, at);
        r->vouched[at] = is_dict && vouch_dict(r, value);
    }
    return r->vouched[at];
}
