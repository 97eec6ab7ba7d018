# rampipe: make all | check | bench | demo | install | uninstall | clean | format | lint
#               | check-asan. A new tool is tools/NAME.c + tools/NAME.ggo (+ NAME.h2m).
VERSION := 0.2.0
# Of the shared library: another number when a program built with an older one may not run
# with this one. 0 promises nothing.
ABI := 0
PREFIX ?= /usr/local
PROGRAM_PREFIX ?=
DESTDIR ?=
BUILD ?= build

# CPPFLAGS, CFLAGS, LDFLAGS and LDLIBS are the user's. Ours stand around them: our headers
# before installed ones, and what makes the same bytes on every machine last.
CFLAGS ?= -O2 -g
# Options that a compiler does not know it ignores. make WERROR=1 stops at warnings.
WERROR ?= 0
WARN := -Wno-unknown-warning-option $(if $(filter-out 0,$(WERROR)),-Werror) \
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wundef -Wvla -Wcast-qual \
    -Wpointer-arith -Wwrite-strings -Wredundant-decls -Wstrict-prototypes \
    -Wmissing-prototypes -Wnull-dereference -Wduplicated-cond -Wduplicated-branches \
    -Wlogical-op
# Tests look up what is there, and hand in what is not changed.
TEST_WARN = $(WARN) -Wno-null-dereference -Wno-cast-qual
FIXED := -D_GNU_SOURCE -std=c17 -ffp-contract=off
COMPILE = $(CC) -Iinclude $(1) $(CPPFLAGS) $(CFLAGS) $(FIXED) -MMD -MP
LINK = $(CC) $(CFLAGS) $(LDFLAGS)
LIBS := -Wl,--as-needed -lcsv -lyajl -lz -lgsl -lgslcblas -lm $(LDLIBS)

# tools/NAME.ggo is a tool; tools/NAME-MODE.ggo, where NAME is a tool, a mode of it.
GGO := $(foreach n,$(basename $(notdir $(wildcard tools/*.ggo))),\
    $(if $(findstring _,$(n))$(filter common,$(n)),,$(n)))
MODES := $(foreach n,$(GGO),$(if $(filter $(addsuffix -%,$(filter-out $(n),$(GGO))),$(n)),$(n)))
TOOLS := $(filter-out $(MODES),$(GGO))
LIB_SRC := $(sort $(wildcard lib/*/*.c))
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/%.o)
LIB := $(BUILD)/librampipe.a
SONAME := librampipe.so.$(ABI)
SHARED := $(BUILD)/librampipe.so.$(VERSION)
BIN := $(TOOLS:%=$(BUILD)/bin/%)
MAN := $(GGO:%=$(BUILD)/man/%.1) $(BUILD)/man/rampipe.5

# make V=1 shows the commands.
V ?= 0
quiet = $(if $(filter 0,$(V)),@printf '  %-8s %s\n' $(1) $(patsubst $(CURDIR)/%,%,$@);,)
# Manual pages carry the date of the release, not of the build.
export SOURCE_DATE_EPOCH ?= 1795219200

.PHONY: all check bench demo install uninstall clean format lint check-asan fuzz man traces
.DELETE_ON_ERROR:
.SECONDARY:

all: $(BIN) $(LIB) $(SHARED)

# ---- what each part needs from Debian ------------------------------------------------
build/needs/%: scripts/bootstrap
	@scripts/bootstrap $*
	@mkdir -p $(@D) && touch $@

# ---- compiling ------------------------------------------------------------------------
$(BUILD)/lib/%.o: lib/%.c Makefile | build/needs/build
	@mkdir -p $(@D)
	$(call quiet,CC)$(call COMPILE,$(WARN)) -c $< -o $@
# What the shared library shows is what its headers declare.
$(BUILD)/shared/%.o: %.c Makefile | build/needs/build
	@mkdir -p $(@D)
	$(call quiet,CC)$(call COMPILE,$(WARN) -fPIC -fvisibility=hidden) -c $< -o $@

$(LIB): $(LIB_OBJ)
	$(call quiet,AR)rm -f $@ && $(AR) rcs $@ $^
$(SHARED): $(LIB_SRC:%.c=$(BUILD)/shared/%.o)
	$(call quiet,LINK)$(LINK) -shared -Wl,-soname,$(SONAME) $^ $(LIBS) -o $@

# The option parsers. They are made in build/, once for all variants of the build.
build/ggo/%.c: tools/%.ggo $(wildcard tools/*.ggo) scripts/make-options Makefile | build/needs/build
	@mkdir -p $(@D)
	$(call quiet,GENGETOPT)scripts/make-options $* $(VERSION) $(@D)
build/ggo/%.h: build/ggo/%.c ;

$(BUILD)/ggo/%.o: build/ggo/%.c
	@mkdir -p $(@D)
	$(call quiet,CC)$(call COMPILE,-w) -c $< -o $@
GGO_H := $(GGO:%=build/ggo/%.h)
$(BUILD)/tools/%.o: tools/%.c Makefile | $(GGO_H)
	@mkdir -p $(@D)
	$(call quiet,CC)$(call COMPILE,-Ibuild $(WARN)) -c $< -o $@
# A tool is made of tools/NAME.c, its parts tools/NAME_*.c, its options, and its modes.
objects = $(BUILD)/tools/$(1).o $(BUILD)/ggo/$(1).o \
    $(patsubst %.c,$(BUILD)/%.o,$(wildcard tools/$(1)_*.c))
modes = $(filter $(1)-%,$(MODES))
.SECONDEXPANSION:
$(BUILD)/bin/%: $$(call objects,$$*) $$(foreach m,$$(call modes,$$*),$$(call objects,$$m)) $(LIB)
	@mkdir -p $(@D)
	$(call quiet,LINK)$(LINK) $^ $(LIBS) -o $@

-include $(wildcard $(BUILD)/lib/*/*.d $(BUILD)/shared/lib/*/*.d $(BUILD)/tools/*.d $(BUILD)/tests/*/*.d)

# ---- manual pages ----------------------------------------------------------------------
man: $(MAN)
# The tool of a mode; of a tool itself.
tool_of = $(firstword $(foreach t,$(TOOLS),$(if $(filter $(t) $(t)-%,$(1)),$(t))))
mode_of = $(patsubst $(call tool_of,$(1))-%,%,$(filter-out $(TOOLS),$(1)))
$(BUILD)/man/%.1: tools/%.ggo $(BIN) $(wildcard tools/*.h2m) scripts/make-man | build/needs/man
	@mkdir -p $(@D)
	$(call quiet,MAN)scripts/make-man '$(BUILD)/bin/$(call tool_of,$*)' '$(call mode_of,$*)' \
	    '$(VERSION)' $@
$(BUILD)/man/rampipe.5: $(BUILD)/bin/reccheck
	@mkdir -p $(@D)
	$(call quiet,MAN)$< --man >$@

# ---- tests ------------------------------------------------------------------------------
UNIT := $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(wildcard tests/unit/test_*.c))
$(BUILD)/tests/unit/%: tests/unit/%.c $(LIB) | build/needs/test
	@mkdir -p $(@D)
	$(call quiet,LINK)$(call COMPILE,$(TEST_WARN)) $(LDFLAGS) $< $(LIB) -lcmocka $(LIBS) -o $@
BENCH := $(patsubst tests/bench/%.c,$(BUILD)/bench/%,$(wildcard tests/bench/*.c))
$(BUILD)/bench/%: tests/bench/%.c $(LIB)
	@mkdir -p $(@D)
	$(call quiet,LINK)$(call COMPILE,$(TEST_WARN)) $(LDFLAGS) $< $(LIB) $(LIBS) -o $@

check: build/needs/test all man $(UNIT) $(BENCH)
	@BUILD=$(BUILD) tests/run

SANITIZE := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all \
            -fno-omit-frame-pointer
check-asan:
	$(MAKE) BUILD=build/asan CFLAGS='$(SANITIZE)' check

bench: build/needs/bench all $(BENCH)
	@BUILD=$(BUILD) tests/bench/run

# libFuzzer needs clang. SECONDS_EACH=60 make fuzz
FUZZ := $(patsubst tests/fuzz/%.c,build/fuzz/%,$(wildcard tests/fuzz/*.c))
build/fuzz/%: tests/fuzz/%.c $(LIB_SRC) | build/needs/fuzz
	@mkdir -p $(@D)
	$(call quiet,FUZZ)clang -Iinclude $(CPPFLAGS) $(FIXED) -O1 -g -fsanitize=fuzzer,address,undefined \
	    -fno-sanitize-recover=all $< $(LIB_SRC) $(LIBS) -o $@
fuzz: $(FUZZ)
	@tests/fuzz/run $(FUZZ)

demo: all
	@BUILD=$(BUILD) scripts/demo

traces: all
	$(MAKE) -C traces BIN=$(CURDIR)/$(BUILD)/bin

# ---- installing -------------------------------------------------------------------------
HEADERS := $(wildcard include/rampipe/*.h)
INSTALL := install -D
TABLES := $(wildcard traces/redundant/*.tsv)
tabledir = $(DESTDIR)$(PREFIX)/share/rampipe/redundant
bindir = $(DESTDIR)$(PREFIX)/bin
install: all man
	for t in $(TOOLS); do \
	    $(INSTALL) $(BUILD)/bin/$$t $(bindir)/$(PROGRAM_PREFIX)$$t && \
	    $(INSTALL) -m 644 $(BUILD)/man/$$t.1 \
	        $(DESTDIR)$(PREFIX)/share/man/man1/$(PROGRAM_PREFIX)$$t.1 || exit 1; done
	$(INSTALL) -m 644 $(BUILD)/man/rampipe.5 $(DESTDIR)$(PREFIX)/share/man/man5/rampipe.5
	$(INSTALL) -m 644 $(LIB) $(DESTDIR)$(PREFIX)/lib/librampipe.a
	for h in $(HEADERS); do \
	    $(INSTALL) -m 644 $$h $(DESTDIR)$(PREFIX)/$$h || exit 1; done
	for f in $(notdir $(TABLES)); do \
	    $(INSTALL) -m 644 traces/redundant/$$f $(tabledir)/$$f || exit 1; done
	mkdir -p $(DESTDIR)$(PREFIX)/lib/pkgconfig
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' scripts/rampipe.pc.in \
	    >$(DESTDIR)$(PREFIX)/lib/pkgconfig/rampipe.pc
uninstall:
	for t in $(TOOLS); do rm -f $(bindir)/$(PROGRAM_PREFIX)$$t \
	    $(DESTDIR)$(PREFIX)/share/man/man1/$(PROGRAM_PREFIX)$$t.1; done
	rm -f $(DESTDIR)$(PREFIX)/share/man/man5/rampipe.5 \
	    $(DESTDIR)$(PREFIX)/lib/librampipe.a $(DESTDIR)$(PREFIX)/lib/pkgconfig/rampipe.pc
	rm -rf $(DESTDIR)$(PREFIX)/include/rampipe $(DESTDIR)$(PREFIX)/share/rampipe

# ---- housekeeping -----------------------------------------------------------------------
SOURCES := $(wildcard include/rampipe/*.h lib/*/*.[ch] tools/*.[ch] tests/*/*.[ch])
format:
	clang-format -i $(SOURCES)
lint: build/needs/lint $(GGO_H)
	@clang-format --dry-run --Werror $(SOURCES)
	@cppcheck --quiet --std=c17 --enable=warning,performance,portability \
	    --error-exitcode=1 --inline-suppr --suppress=missingIncludeSystem \
	    -Iinclude -Ibuild lib tools
	$(MAKE) BUILD=build/clang CC=clang WERROR=1 all
clean:
	rm -rf build
