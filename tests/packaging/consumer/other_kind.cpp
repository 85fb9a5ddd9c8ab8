// Of a library that is checked.
#include <sluice/sluice.hpp>

void checked_elsewhere() {
    sluice::Stage stage{"stage", [](sluice::StreamRef, const int&) {}};
    sluice::Pipeline pipeline{sluice::Stages{stage}};
    pipeline.finish();
}
