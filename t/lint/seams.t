#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# Files and clocks of core are reached through core/base/seams.h, so that a test can make
# the k-th call fail, or set the clock back (RELIABILITY.md section 11). What goes past it
# is listed here with the reason, and the list has nothing that is not so.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Lint;
use Test::More;

my $calls = qr/(?<![\w.>])(open|openat|creat|fopen|freopen|opendir|mkdir|mkdirat|mkstemp|mkdtemp|
                rename|renameat|renameat2|unlink|unlinkat|remove|rmdir|link|symlink|truncate|
                ftruncate|fsync|fdatasync|sync|clock_gettime|gettimeofday|time|clock)\s*\(/x;

my $proc = 'the kernel\'s own files, which do not fail for want of room';
my $picture = 'a picture or page that is lost is reported, and the run goes on';
my $reader = 'reads what the user wrote, before there is anything to lose';
my %past = (
    'src/core/base/comm.c' => ['clock_gettime', 'how long others are waited for, in any thread'],
    'src/core/base/folders.c' => ['mkdir open', 'of the user\'s settings and caches: what is not there is said where it is missed'],
    'src/core/callbacks/image_visualizer.c' => ['mkdir', $picture],
    'src/core/callbacks/mlperf.c' => ['fopen fsync mkdir open', "$proc; $picture"],
    'src/core/image/encode.c' => ['fopen rename unlink', $picture],
    'src/core/callbacks/prediction_tracker.c' => ['mkdir', $picture],
    'src/core/callbacks/profiler.c' => ['mkdir unlink', $picture],
    'src/core/callbacks/system_metrics_monitor.c' => ['open', $proc],
    'src/core/callbacks/weights_saver.c' => ['mkdir', $picture],
    'src/core/checkpoint/writer.c' => ['clock_gettime', 'time of the processor, not of day'],
    'src/core/config/settings.c' => ['open', $reader],
    'src/core/data/cache.c' => ['fsync mkdir open rename unlink', 'a cache: made again'],
    'src/core/loggers/file.c' => ['ftruncate', 'empties what `overwrite` says may be emptied'],
    'src/core/loggers/tensorboard.c' => ['fopen', $reader],
    'src/core/loggers/tfevents.c' => ['mkdir opendir', 'others\' format: it can be exported again'],
    'src/core/plugin/plugin.c' => ['open', $reader],
    'src/core/recipe/beside.c' => ['fopen', 'copies: the files stay where they are'],
    'src/core/recipe/load.c' => ['openat', $reader],
    'src/core/recipe/recipe.c' => ['open', $reader],
    'src/core/journal/events.c' => ['ftruncate', 'cuts off what a crash left of a record'],
    'src/core/library/facts.c' => ['fopen', $proc],
    'src/core/library/predictions_detail.c' => ['mkdir', 'a folder that the user asked for'],
    'src/core/library/tracked.c' => ['fopen', $picture],
    'src/core/library/index.c' => ['unlink', 'a cache, of SQLite\'s: made again'],
    'src/core/library/index_look.c' => ['opendir', 'of that cache: only to look'],
);

my (@unlisted, @stale);
for my $path (files(qr/\.[ch]$/, 'src/core')) {
    next if $path eq 'src/core/base/seams.c';
    my %allowed = map { $_ => 0 } split / /, ($past{$path} // [''])->[0];
    my $line = 0;
    for (split /\n/, code($path)) {
        $line++;
        next if /^\s*#/;
        while (/$calls/g) {
            if (exists $allowed{$1}) { $allowed{$1}++ } else { push @unlisted, "$path:$line: $1" }
        }
    }
    push @stale, map { "$path: $_" } grep { !$allowed{$_} } sort keys %allowed;
}
push @stale, grep { !-f "$root/$_" } sort keys %past;
none('core reaches files and clocks through its seams, but where it is said why not', @unlisted);
none('and no exception is listed that is none', @stale);
done_testing();
