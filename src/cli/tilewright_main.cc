#include "cli/app.h"

int main(int argc, char** argv) { return tw::cli::run_app(argc, argv); }
