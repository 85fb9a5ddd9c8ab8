// Of the library sluice::compiled: the Host backend by all of its names, and what does not depend on a backend.
#define SLUICE_COMPILES_COMMON
#include "backend.hpp"

SLUICE_ONE_KIND(host);

SLUICE_COMPILE_FOR(sluice::UncheckedHost);
SLUICE_COMPILE_FOR(sluice::Checked<sluice::UncheckedHost>);
#if SLUICE_CHECKED // otherwise the first of these
SLUICE_COMPILE_FOR(sluice::Host);
#endif
