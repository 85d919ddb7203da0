// The tables of live objects, one for each kind of handle. They are never destroyed (see state.h).

#include "state.h"

namespace fake {

namespace {

template <class T>
Table<T>& table() {
    static Table<T>& table = *new Table<T>;
    return table;
}

}  // namespace

Table<Stream>& streams() { return table<Stream>(); }
Table<Event>& events() { return table<Event>(); }
Table<Module>& modules() { return table<Module>(); }
Table<Function>& functions() { return table<Function>(); }
Table<Graph>& graphs() { return table<Graph>(); }
Table<GraphExec>& graph_execs() { return table<GraphExec>(); }
Table<Pool>& pools() { return table<Pool>(); }

}  // namespace fake
