// Of the library sluice::compiled: the checker.
#define SLUICE_COMPILES_BODIES
#define SLUICE_COMPILES_CHECKER
#include <sluice/backend/detail/checked/checker.hpp>

#include "one_kind.hpp"

SLUICE_ONE_KIND(checker);
