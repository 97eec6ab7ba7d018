# What experiments share. A Makefile sets OUT, `parameters` (what all its points depend on),
# `ingredients` (files that make them: tools, inputs), `products` (what is made of the points),
# and includes this.
#
# A point is a file that takes time to make. What tells points apart is in their paths; what
# all of them depend on is in OUT/parameters, older than each: with other parameters, inputs
# or tools none is used again. OUT/list names them: a table of other points is another table,
# and the old one is removed first: what is made of points needs both files.
# Every recipe writes beside its target and renames; a failing stage or an empty product
# leaves nothing.
export PATH := $(abspath $(BIN)):$(PATH)
export LC_ALL := C
SHELL := bash
.SHELLFLAGS := -o pipefail -c
# behind the last stage of a pipeline
kept = >$@.part && test -s $@.part && mv $@.part $@ || { rm -f $@.part; exit 1; }

.PHONY: all clean always
.DELETE_ON_ERROR:
all:

# A stamp is written when what it says has changed. $(file) writes words of any number.
$(OUT)/parameters: says = $(parameters)
$(OUT)/list: says = $(points)
$(OUT)/parameters: also = cksum $(ingredients) $(MAKEFILE_LIST)
$(OUT)/list: also = :
$(OUT)/parameters $(OUT)/list: always
	@$(shell mkdir -p $(@D))$(file >$@.part,$(says))
	@{ tr -s ' ' '\n' <$@.part && $(also); } >$@.new && rm $@.part || { rm -f $@.part $@.new; exit 1; }
	@if cmp -s $@.new $@; then rm $@.new; else rm -f $(products) && mv $@.new $@; fi
# How many points there are.
done_points = find $(OUT) -mindepth 2 -newer $(OUT)/parameters | grep -cxFf $(OUT)/list -
