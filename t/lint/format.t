#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# The tree is as .clang-format says: C, its headers, CUDA, and the C++ of tests and of Gloo.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Lint;
use Test::More;

# Each version lays some things out in its own way: this is the one of Debian 12.
my $version = 14;

my ($tool) = grep { (`$_ --version 2>/dev/null` // '') =~ /version $version\./ }
    "clang-format-$version", 'clang-format';
plan(skip_all => "there is no clang-format $version") unless $tool;

# The files of LIST that are not laid out so.
sub unclean {
    my @list = @_;
    my %found;
    while (my @some = splice @list, 0, 100) {
        open my $said, '-|', "cd '$root' && $tool --dry-run @some 2>&1" or die "$tool: $!";
        while (<$said>) {
            $found{"$1:$2"} = 1 if /^(\S+?):(\d+):\d+: \w+: .*clang-format-violations/;
        }
        close $said;
    }
    return sort keys %found;
}

my @sources = files(qr/\.(c|h|cc|cuh?)$/, qw(include src t bench examples man));
cmp_ok(scalar @sources, '>', 1000, 'sources are found');
none('they are laid out as .clang-format says', unclean(@sources));
done_testing();
