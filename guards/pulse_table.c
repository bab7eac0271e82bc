/* Pulses, and a table from addresses of objects to those that end with a change of the object.
 *
 * Objects are not held.  One whose death nobody tells of leaves its place behind, until the table
 * grows and finds that the pulses there have ended; another that comes to lie there meanwhile ends
 * them for nothing, at worst.
 */
#include "pulse_table.h"

Pulse *
pulse_new(void)
{
    Pulse *pulse = PyMem_Malloc(sizeof(Pulse));
    if (pulse != NULL) {
        *pulse = (Pulse){1, 1};
    }
    return pulse;
}

void
pulse_release(Pulse *pulse)
{
    if (pulse != NULL && --pulse->refs == 0) {
        PyMem_Free(pulse);
    }
}

/* The place of an object, or the free one where the search for it ends. */
static PulsePlace *
find_place(PulsePlace *places, size_t size, PyObject *of)
{
    size_t i = (((uintptr_t)of >> 4) * 0x9E3779B97F4A7C15u >> 20) & (size - 1);
    while (places[i].of != NULL && places[i].of != of) {
        i = (i + 1) & (size - 1);
    }
    return &places[i];
}

/* Let go of pulses that have ended. */
static void
drop_ended(PulsePlace *place)
{
    Py_ssize_t kept = 0;
    for (Py_ssize_t i = 0; i < place->count; i++) {
        if (place->pulses[i]->beats) {
            place->pulses[kept++] = place->pulses[i];
        }
        else {
            pulse_release(place->pulses[i]);
        }
    }
    place->count = kept;
}

/* Make room for more: a new table of the places where something still beats. */
static int
table_grow(PulseTable *table)
{
    size_t live = 0, size = 64;
    for (size_t i = 0; i < table->size; i++) {
        drop_ended(&table->places[i]);
        live += table->places[i].count > 0;
    }
    while (size < 4 * (live + 1)) {
        size *= 2;
    }
    PulsePlace *places = PyMem_Calloc(size, sizeof(PulsePlace));
    if (places == NULL) {
        return 0;
    }
    for (size_t i = 0; i < table->size; i++) {
        PulsePlace *old = &table->places[i];
        if (old->count > 0) {
            *find_place(places, size, old->of) = *old;
        }
        else {
            PyMem_Free(old->pulses);
        }
    }
    PyMem_Free(table->places);
    *table = (PulseTable){places, size, live};
    return 1;
}

/* Room for one more pulse. */
static int
place_grow(PulsePlace *place)
{
    drop_ended(place);
    if (place->count < place->room) {
        return 1;
    }
    Py_ssize_t room = 2 * place->room + 1;
    Pulse **pulses = PyMem_Resize(place->pulses, Pulse *, room);
    if (pulses == NULL) {
        return 0;
    }
    place->pulses = pulses;
    place->room = room;
    return 1;
}

int
pulses_add(PulseTable *table, PyObject *of, Pulse *pulse)
{
    if (4 * table->used >= 3 * table->size && !table_grow(table)) {
        return 0;
    }
    PulsePlace *place = find_place(table->places, table->size, of);
    if (!place_grow(place)) {
        return 0;
    }
    if (place->of == NULL) {
        place->of = of;
        table->used++;
    }
    place->pulses[place->count++] = pulse;
    pulse->refs++;
    return 1;
}

int
pulses_end(PulseTable *table, PyObject *of)
{
    if (table->size == 0) {
        return 0;
    }
    PulsePlace *place = find_place(table->places, table->size, of);
    Py_ssize_t count = place->count;
    for (Py_ssize_t i = 0; i < count; i++) {
        place->pulses[i]->beats = 0;
        pulse_release(place->pulses[i]);
    }
    PyMem_Free(place->pulses);
    place->pulses = NULL; /* the place stays taken, so that others are found behind it */
    place->count = place->room = 0;
    return count > 0;
}
