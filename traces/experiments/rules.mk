# The rules that all experiments share. A Makefile sets OUT, `sweep` (the values of the parameters of
# points.yaml, as options of task2graph), `ingredients` (the tools and inputs that make the points) and
# `products` (the files that are made from the points), and includes this file.
#
# A point is a file that takes time to make; a task of points.yaml makes it. runtasks runs as many tasks
# at a time as make -j allows. OUT/log has the state of the run, from which a stopped run continues. On
# a terminal runtasks shows its progress. With ENGINE=slurm all points run in one job of Slurm, with
# SLURM_OPTIONS and as many processors as -j says, or without -j on a node of its own; OUT must then be a
# folder that the node sees, too. The products are the same.
#
# OUT/tasks.rec has the tasks. If parameters change, the tasks that differ run again. If a tool or an
# input changes (OUT/ingredients has their checksums), all tasks do. Products of the old points are removed
# first. OUT/points.rec is written when all tasks have ended, so it is younger than all points. Every recipe
# writes to a file beside its target and renames it; if a stage fails or the product is empty, no file is left.
export PATH := $(abspath $(BIN)):$(PATH)
export LC_ALL := C
SHELL := bash
.SHELLFLAGS := -o pipefail -c
# comes behind the last stage of a pipeline: its output becomes the target
kept = >$@.part && test -s $@.part && mv $@.part $@ || { rm -f $@.part; exit 1; }
# replaces the target by $@.new if they differ, and then removes $(1) and the products, which are outdated
stamp = if cmp -s $@.new $@; then rm $@.new; else rm -f $(1) $(products) && mv $@.new $@; fi
comma := ,
space := $(subst ,, )
# words as the values of a --set: with commas between them, and their own commas as %2C
values_of = $(subst $(space),$(comma),$(strip $(subst $(comma),%2C,$(subst %,%25,$(1)))))
# a text as one value of a --set, whatever characters it has
text_of = '$(subst $(comma),%2C,$(subst %,%25,$(1)))'

.PHONY: all clean always
.DELETE_ON_ERROR:
all:

$(OUT)/ingredients: always
	@mkdir -p $(@D)
	@cksum $(ingredients) $(MAKEFILE_LIST) >$@.new || { rm -f $@.new; exit 1; }
	@$(call stamp,$(OUT)/log $(OUT)/points.rec)

$(OUT)/tasks.rec: points.yaml $(OUT)/ingredients always
	@task2graph --template $< $(sweep) >$@.new || { rm -f $@.new; exit 1; }
	@$(call stamp,$(OUT)/points.rec)

ENGINE ?= local
SLURM_OPTIONS ?=
# make -jN gives runtasks -jN, make without -j gives -j1, and make -j none: as many as there are processors
local = $(filter-out -j,$(or $(filter -j%,$(MAKEFLAGS)),-j1))
slurm = --engine slurm $(filter-out -j,$(filter -j%,$(MAKEFLAGS))) --slurm-options '$(SLURM_OPTIONS)'
$(if $(filter local slurm,$(ENGINE)),,$(error ENGINE must be local or slurm, got '$(ENGINE)'))

$(OUT)/points.rec: $(OUT)/tasks.rec $(OUT)/ingredients
	@runtasks $($(ENGINE)) --resume $(OUT)/log $< $(kept)

clean:
	rm -rf $(OUT)
