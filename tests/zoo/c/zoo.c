/* The C zoo's door and its knobs. What its ops are for stands in tests/zoo/README.md. */
#include "zoo.h"

TENON_KNOB("enabled", BOOL, "true", "Read by the op ZooCKnobs.");
TENON_KNOB("answer", INT, "42", "Read by the op ZooCKnobs.");
TENON_KNOB("ratio", FLOAT, "0.5", "Read by the op ZooCKnobs.");
TENON_KNOB("greeting", STRING, "hello", "Read by the op ZooCKnobs.");

TENON_PLUGIN();
