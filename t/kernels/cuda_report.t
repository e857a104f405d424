#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# What the compiler says of the CUDA kernels, without a GPU: for every kernel and
# architecture no spills, and no more static shared memory than a block has without asking.
# That a block's threads find registers follows from the launch bounds, which the compiler
# keeps: every kernel must have some.
use strict;
use warnings;
use Test::More;

my $build = $ENV{ET_BUILDDIR} // '.';
my @reports = sort glob "$build/cuda-objects/*.report";
plan skip_all => 'the CUDA module was not built' unless @reports;

my $shared = 48 << 10; # CUDA C++ programming guide, table of compute capabilities


my $kernels = 0;
for my $path (@reports) {
    (my $family = $path) =~ s{.*/|\.report$}{}g;
    open my $in, '<', $path or die "$path: $!";
    my ($kernel, $arch, @spills, @shared, @heavy);
    while (<$in>) {
        if (/Compiling entry function '(\S+)' for '(\w+)'/) {
            ($kernel, $arch) = ($1, $2);
            $kernels++;
        } elsif (/(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads/) {
            push @spills, "$kernel on $arch: $2 and $3 bytes" if $2 || $3;
        } elsif (/Used \d+ registers/) {
            push @shared, "$kernel on $arch: $1 bytes" if /(\d+) bytes smem/ && $1 > $shared;
        }
    }
    is("@spills", '', "$family: no kernel spills registers");
    is("@shared", '', "$family: static shared memory is what every GPU has");
}
cmp_ok($kernels, '>', 2 * @reports, "the reports speak of kernels ($kernels of them)");

# __launch_bounds__ beside every __global__.
my @unbounded;
for my $path (glob(($ENV{ET_SRCDIR} // '.') . '/src/kernels/cuda/*.cu*')) {
    open my $in, '<', $path or die "$path: $!";
    my $text = do { local $/; <$in> };
    while ($text =~ /__global__(.{0,120}?)\(/sg) {
        push @unbounded, "$path: $1" unless $1 =~ /__launch_bounds__/;
    }
}
is("@unbounded", '', 'every kernel says with how many threads it is launched');
done_testing();
