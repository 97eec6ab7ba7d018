# make help prints the lines that begin with ##:
## make               build tools and library
## make demo          run the main pipeline on samples, and show what to try next
## make check         run the tests; TESTS='regex' picks some, EVERY=1 runs all of their samples
## make install       install below PREFIX (/usr/local), or below DESTDIR/PREFIX; make uninstall removes it
## make man           make the manual pages, in build/man
## make bench         measure the speed of the tools; bench-scale: how time grows with the input
## make accuracy      compare predictions with published and measured times
## make traces        make the samples in traces/ again
## make lint          run clang and the checkers; make format formats the sources
## make check-asan    run the tests with sanitizers; check-faults: with failing calls;
##                    check-faults-asan: with both; then coverage: which branches were taken
## make check-fresh   check what a fresh machine needs
## make fuzz          run library and tools on damaged input; SECONDS_EACH=60 for each target
## make clean         remove build/
## V=1 shows commands, WERROR=1 stops at warnings, BUILD=DIR builds in another folder.
# A new tool is tools/NAME.c + tools/NAME.ggo (+ NAME.h2m).
VERSION := 0.4.0
# The number in the name of the shared library. It changes when a program that was built with an
# older library may not run with this one. 0 promises nothing.
ABI := 0
BUILD ?= build
# make runs on all processors, unless the caller gives -jN.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc)
endif

# CPPFLAGS, CFLAGS, LDFLAGS and LDLIBS belong to the user. -Iinclude comes before them, so that
# headers of this tree win over installed ones. FIXED comes after them, so that results are the same
# on every machine (-ffp-contract=off).
CFLAGS ?= -O2 -g
# A compiler ignores the warnings that it does not know. make WERROR=1 stops at warnings.
WERROR ?= 0
WARN := -Wno-unknown-warning-option $(if $(filter-out 0,$(WERROR)),-Werror) \
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wundef -Wvla -Wcast-qual \
    -Wpointer-arith -Wwrite-strings -Wredundant-decls -Wstrict-prototypes \
    -Wmissing-prototypes -Wnull-dereference -Wduplicated-cond -Wduplicated-branches \
    -Wlogical-op
# Tests may use the results of lookups unchecked, and cast away const of data that is not changed.
TEST_WARN = $(WARN) -Wno-null-dereference -Wno-cast-qual
FIXED := -D_GNU_SOURCE -std=c17 -ffp-contract=off
COMPILE = $(CC) -Iinclude $(1) $(CPPFLAGS) $(CFLAGS) $(FIXED) -MMD -MP
LINK = $(CC) $(CFLAGS) $(LDFLAGS)
LIBS := -pthread -lsqlite3 -lcsv -lyajl -lyaml -lglpk -lprotobuf-c -ldeflate -lz -lgsl -lgslcblas -lm
LINKED = -Wl,--as-needed $(LIBS) $(LDLIBS)
# Small libraries are linked into the tools, if they are there as static libraries: loading them would
# take longer than the work on a small input. STATIC= links shared ones, as distributions want.
STATIC ?= c csv deflate gsl gslcblas protobuf-c yajl yaml z
archive = $(patsubst libyajl.a,libyajl_s.a,$(1:-l%=lib%.a))
# Looked up when the first tool is linked: scripts/bootstrap may have brought the libraries just before.
STATIC_HERE = $(eval STATIC_HERE := $(shell for a in $(call archive,$(STATIC:%=-l%)); do \
    case $$($(CC) -print-file-name=$$a) in (/*) echo $$a ;; esac; done))$(STATIC_HERE)
static = $(if $(filter $(STATIC_HERE),$(call archive,$(1))),-l:$(call archive,$(1)),$(1))
TOOL_LINKED = -Wl,--as-needed $(foreach l,$(LIBS),$(call static,$(l))) $(LDLIBS)
# Tools that contain the C library, too, start in two thirds of the time. Then all their libraries must be there as
# static ones. A tool that needs a large library loads both. Sanitizers need a C library that is loaded.
LARGE := -lsqlite3 -lglpk
WITH_LARGE := rec2sqlite
CONTAINED_LINKED = -static-pie $(filter-out $(LARGE),$(TOOL_LINKED))
CONTAINED = $(eval CONTAINED := $(if $(filter c,$(STATIC)),$(if $(findstring -fsanitize,$(CFLAGS) $(LDFLAGS)),,$(shell \
    echo 'int main(void) { return 0; }' | $(LINK) -x c - $(CONTAINED_LINKED) -o /dev/null 2>/dev/null && echo yes))))$(CONTAINED)
contained = $(if $(CONTAINED),$(if $(filter $(WITH_LARGE),$(1)),,yes))

# tools/NAME.ggo is a tool, and tools/NAME-MODE.ggo a mode of the tool NAME.
GGO := $(foreach n,$(basename $(notdir $(wildcard tools/*.ggo))),\
    $(if $(findstring _,$(n))$(filter common,$(n)),,$(n)))
MODES := $(foreach n,$(GGO),$(if $(filter $(addsuffix -%,$(filter-out $(n),$(GGO))),$(n)),$(n)))
TOOLS := $(filter-out $(MODES),$(GGO))
# Modes that are programs of their own, because they link libraries that take long to load. In the
# tool, tools/NAME-MODE.exec.c stands in for the mode, and runs its program.
APART := $(patsubst tools/%.exec.c,%,$(wildcard tools/*.exec.c))
LIB_SRC := $(sort $(wildcard lib/*/*.c))
# lib/ROOM/NAME.proto describes messages of Protocol Buffers; NAME.pb-c.[ch] are made from it.
PROTO := $(patsubst %.proto,%.pb-c,$(notdir $(wildcard lib/*/*.proto)))
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/%.o) $(PROTO:%=$(BUILD)/proto/%.o) $(BUILD)/ggo/tool_options.o
LIB := $(BUILD)/librampipe.a
SONAME := librampipe.so.$(ABI)
SHARED := $(BUILD)/librampipe.so.$(VERSION)
BIN := $(TOOLS:%=$(BUILD)/bin/%) $(APART:%=$(BUILD)/libexec/rampipe/%)

# make V=1 shows the commands.
V ?= 0
quiet = $(if $(filter 0,$(V)),@printf '  %-8s %s\n' $(1) $(patsubst $(CURDIR)/%,%,$@);,)
# Manual pages carry the date of the release, not of the build.
export SOURCE_DATE_EPOCH ?= 1795392000

.PHONY: all default help accuracy check check-asan check-faults check-faults-asan check-fresh bench bench-scale \
    coverage demo install uninstall clean format lint fuzz fuzz-targets man traces
.DELETE_ON_ERROR:
.SECONDARY:

# rampipe looks for the tools beside itself.
FRONT := $(BUILD)/bin/rampipe
$(FRONT): scripts/rampipe
	@mkdir -p $(@D)
	@ln -sfr $< $@
all: $(BIN) $(FRONT) $(LIB) $(SHARED)
# `make` without a target also says what to do next; `make all` does not.
.DEFAULT_GOAL := default
default: all
	@echo 'The tools are in $(patsubst $(CURDIR)/%,%,$(BUILD))/bin. Next: make demo; make check; make help lists the rest.'
help:
	@sed -n 's/^## //p' Makefile

# ---- the packages of Debian that each part needs -------------------------------------
build/needs/%: scripts/bootstrap
	@scripts/bootstrap $*
	@mkdir -p $(@D) && touch $@

# ---- compiling ------------------------------------------------------------------------
PROTO_H := $(PROTO:%=build/proto/%.h)
# The static and the shared library have the same objects. The shared library exports only what the
# public headers declare, and its calls to itself cannot be replaced by another library.
PIC := -fPIC -fvisibility=hidden -fno-semantic-interposition
$(BUILD)/lib/%.o: lib/%.c Makefile | build/needs/build $(PROTO_H)
	@mkdir -p $(@D)
	$(call quiet,CC)$(call COMPILE,-Ibuild $(WARN) $(PIC)) -c $< -o $@

# The C of the messages is made in build/, once for all variants of the build.
vpath %.proto $(sort $(dir $(wildcard lib/*/*.proto)))
build/proto/%.pb-c.c build/proto/%.pb-c.h: %.proto Makefile | build/needs/build
	@mkdir -p $(@D)
	$(call quiet,PROTOC)protoc-c --proto_path=$(<D) --c_out=build/proto $<
$(BUILD)/proto/%.o: build/proto/%.c
	@mkdir -p $(@D)
	$(call quiet,CC)$(call COMPILE,-Ibuild -w $(PIC)) -c $< -o $@

# These objects contain files: the tables, and the viewer of timelines.
$(BUILD)/lib/device/shipped.o: traces/devices.rec
$(BUILD)/lib/collective/shipped.o: traces/fabrics.rec traces/collectives.rec
$(BUILD)/lib/parallel/stack.o: traces/stacks.rec
$(BUILD)/lib/parallel/near.o: traces/measured-steps.rec
$(BUILD)/lib/kernel/shipped.o: traces/kernels.rec
$(BUILD)/lib/timeline/page.o: $(wildcard lib/timeline/viewer*)

$(LIB): $(LIB_OBJ)
	$(call quiet,AR)rm -f $@ && $(AR) rcs $@ $^
$(SHARED): $(LIB_OBJ)
	$(call quiet,LINK)$(LINK) -shared -Wl,-soname,$(SONAME) $^ $(LINKED) -o $@

# The option parsers. They are made in build/, once for all variants of the build.
build/ggo/%.c: tools/%.ggo $(wildcard tools/*.ggo) scripts/make-options Makefile | build/needs/build
	@mkdir -p $(@D)
	$(call quiet,GENGETOPT)scripts/make-options $* $(VERSION) $(@D)
build/ggo/%.h: build/ggo/%.c ;

$(BUILD)/ggo/%.o: build/ggo/%.c
	@mkdir -p $(@D)
	$(call quiet,CC)$(call COMPILE,-w) -c $< -o $@
GGO_H := $(GGO:%=build/ggo/%.h)
build/ggo/tool_options.c: scripts/make-option-table $(GGO:%=build/ggo/%.c)
	$(call quiet,MAKE)scripts/make-option-table $(GGO) >$@
$(BUILD)/ggo/tool_options.o: build/ggo/tool_options.c
	@mkdir -p $(@D)
	$(call quiet,CC)$(call COMPILE,-I. $(WARN) $(PIC)) -c $< -o $@
$(BUILD)/tools/%.o: tools/%.c Makefile | $(GGO_H)
	@mkdir -p $(@D)
	$(call quiet,CC)$(call COMPILE,-Ibuild $(WARN)) -c $< -o $@
# A tool is linked from tools/NAME.c, its parts tools/NAME_*.c, the parts whose options its .ggo
# includes, its option parser, and the same of each of its modes.
INCLUDED := $(shell grep '^include "' tools/*.ggo /dev/null | \
    sed 's|^tools/\(.*\)\.ggo:include "\(.*\)"$$|\1=\2|')
included = $(patsubst $(1)=%,tools/%.c,$(filter $(1)=%,$(INCLUDED)))
objects = $(BUILD)/tools/$(1).o $(BUILD)/ggo/$(1).o \
    $(patsubst %.c,$(BUILD)/%.o,$(wildcard tools/$(1)_*.c $(call included,$(1))))
modes = $(filter $(1)-%,$(MODES))
whole = $(foreach n,$(1) $(call modes,$(1)),$(call objects,$(n)))
.SECONDEXPANSION:
in_tool = $(call objects,$(1)) $(foreach m,$(call modes,$(1)),$(if $(filter $m,$(APART)),\
    $(BUILD)/tools/$m.exec.o,$(call objects,$m)))
$(BUILD)/bin/%: $$(call in_tool,$$*) $(LIB)
	@mkdir -p $(@D)
	$(call quiet,LINK)$(LINK) $^ $(if $(call contained,$*),$(CONTAINED_LINKED),$(TOOL_LINKED)) -o $@
# Tests that preload a library, which takes the place of calls, need tools that load the C library.
LOADED := $(TOOLS:%=$(BUILD)/tests/loaded/bin/%)
$(LOADED): $(BUILD)/tests/loaded/bin/%: $$(call in_tool,$$*) $(LIB) | $(BUILD)/bin/%
	@mkdir -p $(@D) && ln -sfn ../../libexec $(@D)/../libexec
	$(if $(call contained,$*),$(call quiet,LINK)$(LINK) $^ $(TOOL_LINKED) -o $@,@ln -sf ../../../bin/$* $@)
# The program of a mode is the tool with the mode itself in it.
$(BUILD)/libexec/rampipe/%: $$(call whole,$$(call tool_of,$$*)) $(LIB)
	@mkdir -p $(@D)
	$(call quiet,LINK)$(LINK) $^ $(LINKED) -o $@

-include $(wildcard $(BUILD)/lib/*/*.d $(BUILD)/tools/*.d \
    $(BUILD)/tests/*/*.d $(BUILD)/bench/*.d)

# ---- manual pages, completion --------------------------------------------------------
# With a PROGRAM_PREFIX such as rp- the installed tools have names such as rp-sim. Their manual
# pages use these names, so they are made in a folder of the prefix.
PROGRAM_PREFIX ?=
# Scripts that are installed like tools.
PLOTS := plot-training plot-latency plot-network plot-plan report fit-collectives predict-collectives fit-steps predict-steps predict-kernels \
    accuracy measure-kernels
PAGES := $(GGO:%=%.1) $(PLOTS:%=%.1) rampipe.5
PAGE_DIR := $(BUILD)/man$(PROGRAM_PREFIX:%=/%)
man: $(PAGES:%=$(BUILD)/man/%) $(BUILD)/man/rampipe.1
# tool_of NAME-MODE is NAME, and mode_of is MODE; of a tool, tool_of is the tool itself, and mode_of is
# empty. printer is the program whose --help (or --man) has the text of a page.
tool_of = $(firstword $(foreach t,$(TOOLS),$(if $(filter $(t) $(t)-%,$(1)),$(t))))
mode_of = $(patsubst $(call tool_of,$(1))-%,%,$(filter $(MODES),$(1)))
printer = $(if $(filter $(PLOTS),$(1)),scripts/$(1),\
    $(BUILD)/bin/$(or $(call tool_of,$(1)),reccheck))
$(BUILD)/man/%: $(BIN) $(PLOTS:%=scripts/%) $(wildcard tools/*.h2m) scripts/make-man Makefile \
    | build/needs/man
	@mkdir -p $(@D)
	$(call quiet,MAN)scripts/make-man '$(patsubst %/,%,$(filter-out ./,$(dir $*)))' \
	    '$(strip $(call printer,$(basename $(@F))))' '$(call mode_of,$(basename $(@F)))' '$(VERSION)' $@

$(BUILD)/man/rampipe.1: $(FRONT) $(BUILD)/bin/reccheck scripts/make-man Makefile | build/needs/man
	@mkdir -p $(@D)
	$(call quiet,MAN)scripts/make-man '' $(FRONT) '' '$(VERSION)' $@

COMPLETION := $(BUILD)/completion/$(PROGRAM_PREFIX)rampipe
$(COMPLETION): scripts/make-completion $(wildcard scripts/recipes/*) $(GGO:%=build/ggo/%.c) $(BIN)
	@mkdir -p $(@D)
	$(call quiet,MAKE)scripts/make-completion '$(PROGRAM_PREFIX)' $(BUILD)/bin $(GGO) >$@

# ---- tests ------------------------------------------------------------------------------
UNIT := $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(wildcard tests/unit/test_*.c))
$(BUILD)/tests/unit/%: tests/unit/%.c $(LIB) | build/needs/test
	@mkdir -p $(@D)
	$(call quiet,LINK)$(call COMPILE,$(TEST_WARN)) $(LDFLAGS) $< $(LIB) -lcmocka $(LINKED) -o $@
BENCH := $(patsubst tests/bench/%.c,$(BUILD)/bench/%,$(wildcard tests/bench/*.c))
$(BUILD)/bench/%: tests/bench/%.c $(LIB)
	@mkdir -p $(@D)
	$(call quiet,LINK)$(call COMPILE,$(TEST_WARN)) $(LDFLAGS) $< $(LIB) $(LINKED) -o $@

# Tools with a kind of cluster that a test adds: its tables take the place of the library's.
KIND := $(patsubst %,$(BUILD)/tests/kind/%,alloc graph2et et2graph metrics partition reccheck sim timeline)
$(BUILD)/tests/kind/pods.o: tests/kind/pods.c $(LIB)
	@mkdir -p $(@D)
	$(call quiet,CC)$(call COMPILE,$(TEST_WARN)) -c $< -o $@
$(KIND): $(BUILD)/tests/kind/%: $$(call in_tool,$$*) $(BUILD)/tests/kind/pods.o $(LIB)
	$(call quiet,LINK)$(LINK) $^ $(TOOL_LINKED) -o $@

# The shim is preloaded into the tools. It is built without the user's flags, because sanitizers do not
# work in a preloaded library.
SHIM := $(BUILD)/tests/fault/shim.so
$(SHIM): tests/fault/shim.c Makefile
	@mkdir -p $(@D)
	$(call quiet,LINK)$(CC) $(WARN) $(FIXED) -O2 -g -fPIC -shared $< -o $@

check: build/needs/test build/needs/man $(BIN) $(FRONT) $(SHARED) $(UNIT) $(BENCH) $(SHIM) $(KIND) $(LOADED)
	@BUILD=$(BUILD) tests/run

# Runs the cases many times, each time with another call of one of the tools failing.
check-faults: build/needs/test $(LOADED) $(BIN) $(SHIM)
	@BUILD=$(BUILD) tests/fault/sweep

# Builds and tries a fresh copy of the tree as on a machine that has only the packages for building.
check-fresh: build/needs/test
	@tests/fresh

# clang's sanitizers and its counters of branches are in one build, so that the tests run once for both.
# The runtime is shared, so that a preloaded library comes before it. Programs count in files that they
# map (%c): what a signal ends counts, too, and processes add up. What sanitizers put into the code may
# make the compiler see wrongs that are none: no warning is an error.
SANITIZE := -O1 -g -fsanitize=address,undefined,float-cast-overflow \
            -fno-sanitize-recover=all -fno-omit-frame-pointer -shared-libasan \
            -fprofile-instr-generate -fcoverage-mapping -mllvm -runtime-counter-relocation \
            -Wno-unused-command-line-argument
SANITIZED = $(MAKE) BUILD=build/asan CC=clang WERROR=0 CFLAGS='$(SANITIZE) \
            -Wl,-rpath=$(shell clang -print-resource-dir)/lib/linux'
check-asan check-faults-asan: export LLVM_PROFILE_FILE := $(CURDIR)/build/asan/profile/%m%c.profraw
check-asan: build/needs/coverage
	@rm -rf build/asan/profile
	+$(SANITIZED) check
check-faults-asan: build/needs/coverage
	+$(SANITIZED) FAULTS="memory EIO" check-faults

# The branches of the library that the tests above took. It fails if they are less than COVERED percent.
COVERED := 88
coverage: build/needs/coverage
	@python3 tests/tools/coverage.py build/asan $(COVERED)

bench: build/needs/bench all $(BENCH)
	@BUILD=$(BUILD) tests/bench/run
# Compares times of pdgen with published ones, and predictions with all measured tables; pictures in build/accuracy.
accuracy: all
	@BUILD=$(BUILD) tests/bench/accuracy
	@if [ -d ../shared/golden ]; then BUILD=$(BUILD) scripts/accuracy --pictures=$(BUILD)/accuracy ../shared/golden; \
	    else echo 'accuracy: ../shared with the measured tables is not here'; fi
bench-scale: build/needs/bench all
	@BUILD=$(BUILD) tests/bench/scale

# libFuzzer needs clang. The library and the tools are built once for all fuzz targets, as a variant
# of the build in which main() of each tool is called fuzz_main_TOOL.
FUZZ := $(patsubst tests/fuzz/%.c,build/fuzz/%,$(wildcard tests/fuzz/*.c))
FUZZ_FLAGS := -O1 -g -fsanitize=fuzzer-no-link,address,undefined,float-cast-overflow \
    -fno-sanitize-recover=all
# without runtasks, which would run any command in its input
FUZZ_TOOLS = $(foreach t,$(filter-out runtasks,$(TOOLS)),X($(subst -,_,$(t)),"$(t)"))
fuzz_tools := $(foreach t,$(TOOLS),build/fuzz/main/$(t).o) $(filter-out $(TOOLS:%=build/fuzz/tools/%.o),\
    $(foreach n,$(GGO),$(call objects,$(n))))
build/fuzz/main/%.o: build/fuzz/tools/%.o
	@mkdir -p $(@D)
	$(call quiet,OBJCOPY)objcopy --redefine-sym main=fuzz_main_$(subst -,_,$*) $< $@
build/fuzz/fuzz_tools: $(if $(filter build/fuzz,$(BUILD)),$(fuzz_tools))
build/fuzz/fuzz_%: tests/fuzz/fuzz_%.c $(LIB)
	$(call quiet,FUZZ)$(call COMPILE,-D'FUZZ_TOOLS=$(FUZZ_TOOLS)') -fsanitize=fuzzer \
	    $< $(filter %.o,$^) $(LIB) $(LINKED) -o $@
fuzz-targets: $(FUZZ)
fuzz: all | build/needs/fuzz
	$(MAKE) BUILD=build/fuzz CC=clang CFLAGS='$(FUZZ_FLAGS)' WERROR=0 fuzz-targets
	@tests/fuzz/run $(FUZZ)

demo: $(BIN) $(FRONT)
	@BUILD=$(BUILD) scripts/demo

traces: all
	$(MAKE) -C traces BIN=$(if $(filter /%,$(BUILD)),,../)$(BUILD)/bin

# ---- installing -------------------------------------------------------------------------
# The variables of the GNU Coding Standards; each of them, DESTDIR and INSTALL may be given.
PREFIX ?= /usr/local
prefix = $(PREFIX)
exec_prefix = $(prefix)
bindir = $(exec_prefix)/bin
# The folder of the tools. If it is not on the PATH, rampipe finds them all the same.
tooldir = $(bindir)
# A tool looks for the programs of its modes in ../libexec/rampipe, beside its own folder.
toolroot = $(shell dirname '$(tooldir)')
libdir = $(exec_prefix)/lib
includedir = $(prefix)/include
datarootdir = $(prefix)/share
datadir = $(datarootdir)
mandir = $(datarootdir)/man
INSTALL = install
SAMPLES := $(wildcard traces/*.txt traces/*.rec traces/agents/*.py traces/models/* traces/policies/* \
    traces/clusters/* traces/redundant/* traces/serving/* traces/tasks/*.* traces/tasks/matrix_powers/*.*)
# All files to install, for scripts/place: FILE=FOLDER/NAME, or ->TARGET=FOLDER/NAME for a link.
# uninstall removes the same files.
completions := datadir/bash-completion/completions/$(PROGRAM_PREFIX)
PLACES = $(foreach t,$(TOOLS),$(BUILD)/bin/$(t)=tooldir/$(PROGRAM_PREFIX)$(t)) \
    $(foreach m,$(APART),$(BUILD)/libexec/rampipe/$(m)=toolroot/libexec/rampipe/$(m)) \
    $(foreach p,$(PLOTS),scripts/$(p)=tooldir/$(PROGRAM_PREFIX)$(p)) \
    $(BUILD)/rampipe=bindir/rampipe $(BUILD)/man/rampipe.1=mandir/man1/rampipe.1 \
    $(foreach f,README.md $(wildcard docs/*.md docs/*.svg scripts/recipes/*),$(f)=datadir/rampipe/$(f)) \
    $(foreach p,$(filter %.1,$(PAGES)),$(PAGE_DIR)/$(p)=mandir/man1/$(PROGRAM_PREFIX)$(p)) \
    $(PAGE_DIR)/rampipe.5=mandir/man5/rampipe.5 \
    $(LIB)=libdir/librampipe.a $(SHARED)=libdir/$(notdir $(SHARED)) \
    ->$(notdir $(SHARED))=libdir/$(SONAME) ->$(SONAME)=libdir/librampipe.so \
    $(BUILD)/rampipe.pc=libdir/pkgconfig/rampipe.pc \
    $(foreach h,$(wildcard include/rampipe/*.h),$(h)=includedir/rampipe/$(notdir $(h))) \
    $(foreach f,$(SAMPLES),$(f)=datadir/rampipe/$(f)) \
    $(foreach p,rampipe_env rampipe_link rampipe_vector,$(BUILD)/$(p).py=datadir/rampipe/scripts/$(p).py) \
    $(foreach p,rampipe_batch rampipe_cluster rampipe_record rampipe_shared rampipe_spool rampipe_store rampipe_task rampipe_template rampipe_worker,scripts/$(p).py=datadir/rampipe/scripts/$(p).py) \
    scripts/torch2graph=datadir/rampipe/scripts/torch2graph $(COMPLETION)=$(completions)rampipe \
    $(if $(PROGRAM_PREFIX),->$(PROGRAM_PREFIX)rampipe=datadir/bash-completion/completions/rampipe) \
    $(foreach t,$(TOOLS),->$(PROGRAM_PREFIX)rampipe=$(completions)$(t))
place = INSTALL='$(INSTALL)' DESTDIR='$(DESTDIR)' bindir='$(bindir)' tooldir='$(tooldir)' toolroot='$(toolroot)' libdir='$(libdir)' \
    includedir='$(includedir)' datadir='$(datadir)' mandir='$(mandir)' scripts/place $(1) \
    $(foreach p,$(PLACES),'$(p)')

install: all $(PAGES:%=$(PAGE_DIR)/%) $(BUILD)/man/rampipe.1 $(COMPLETION)
	@sed -e 's|@prefix@|$(prefix)|' -e 's|@libdir@|$(subst $(prefix)/,$${prefix}/,$(libdir))|' \
	    -e 's|@includedir@|$(subst $(prefix)/,$${prefix}/,$(includedir))|' \
	    -e 's|@version@|$(VERSION)|' -e 's|@libs@|$(LIBS)|' scripts/rampipe.pc.in \
	    >$(BUILD)/rampipe.pc
	@for p in rampipe_env rampipe_link rampipe_vector; do \
	    sed -e 's|^PREFIX = ""|PREFIX = "$(PROGRAM_PREFIX)"|' -e 's|^LIBRARY = ""|LIBRARY = "$(libdir)/$(SONAME)"|' \
	        scripts/$$p.py >$(BUILD)/$$p.py; done
	@sed "s|^prefix='' tools='' share=''|prefix='$(PROGRAM_PREFIX)' tools='$(tooldir)' share='$(datadir)/rampipe'|" \
	    scripts/rampipe >$(BUILD)/rampipe && chmod +x $(BUILD)/rampipe
	@$(call place,install)
uninstall:
	@$(call place,uninstall)

# ---- housekeeping -----------------------------------------------------------------------
SOURCES := $(wildcard include/rampipe/*.h lib/*/*.[ch] tools/*.[ch] tests/*/*.[ch] tests/*/*/*.c)
SCRIPTS := .ci/run $(filter-out %.in %.py %/torch2graph %/plot-network %/fit-collectives %/predict-collectives %/fit-steps %/predict-steps %/predict-kernels %/accuracy %/measure-kernels %/__pycache__ %/recipes,$(wildcard scripts/*)) $(wildcard scripts/recipes/*) tests/run tests/case.bash tests/tools/worker.sh \
    tests/bench/run tests/bench/accuracy tests/bench/collectives tests/bench/steps $(wildcard tests/bench/more-*) $(wildcard tests/bench/scale*) \
    tests/fuzz/run tests/fault/sweep tests/fresh
# Tests have files with names such as 1 and cut, and split words on purpose.
BATS := -s bats -S warning -e SC1090,SC2046,SC2048,SC2210,SC2238 tests/suites/programs.bash $(wildcard tests/suites/*.bats)
format:
	clang-format -i $(SOURCES)
lint: build/needs/lint $(GGO_H) $(PROTO_H)
	@clang-format --dry-run --Werror $(SOURCES)
	@cppcheck -j "$$(nproc)" --quiet --std=c17 --enable=warning,performance,portability \
	    --error-exitcode=1 --inline-suppr --suppress=missingIncludeSystem \
	    -Iinclude -Ibuild lib tools
	@shellcheck -x $(SCRIPTS)
	@shellcheck $(BATS)
	$(MAKE) BUILD=build/clang CC=clang CFLAGS=-O0 WERROR=1 all
	clang -Iinclude $(CPPFLAGS) $(FIXED) -D'FUZZ_TOOLS=$(FUZZ_TOOLS)' -Wall -Werror -fsyntax-only \
	    tests/fuzz/*.c
clean:
	rm -rf build
