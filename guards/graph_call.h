/* An entry's function that calls the graph itself. */
#ifndef DYNACAP_GRAPH_CALL_H
#define DYNACAP_GRAPH_CALL_H

#include "cpython.h"

extern PyTypeObject GraphCall_Type;

#endif
