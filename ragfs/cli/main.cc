#include "ragfs/cli/app.h"

int main(int argc, char** argv) { return ragfs::cli::run_program(argc, argv); }
