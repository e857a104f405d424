#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# A status that nobody looks at is a failure that nobody hears of: every function that a
# header declares and that returns et_status is ET_NODISCARD. Who may ignore one says so by
# "(void)!", with the reason in a comment.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Lint;
use Test::More;

# They record a failure and return the status that they were given, for "return ET_FAIL(...)";
# who returns something else need not look at it.
my %records = map { $_ => 1 } qw(et_fail_at etk_refuse eti_why);

# The functions of CODE, C without comments, that return et_status: [line, name, is marked].
sub declared {
    my ($code) = @_;
    my @found;
    while ($code =~ /^[ \t]*(?<before>(?:(?:ET_NODISCARD|static|inline|extern)\s+)*)et_status\s+(?<name>\w+)\s*\(/mg) {
        my ($name, $is_marked) = ($+{name}, $+{before} =~ /ET_NODISCARD/ ? 1 : 0);
        my $above = substr $code, 0, $-[0];
        push @found, [1 + ($above =~ tr/\n//), $name, $is_marked];
    }
    return @found;
}

is_deeply([map { "$_->[1] $_->[2]" } declared(
    "ET_NODISCARD et_status et_a(int);\net_status\net_b(int);\nET_NODISCARD static inline et_status\net_c(void)\n{\n}\n" .
    "typedef et_status (*et_hook)(int);\nstruct x {\n    et_status status;\n};\n")],
    ['et_a 1', 'et_b 0', 'et_c 1'], 'declarations are found, with and without the mark');

my (@bare, %recorders);
for my $path (files(qr/\.(h|cuh)$/, 'include', 'src')) {
    # (The lines of a macro are no declarations.)
    my $code = code($path) =~ s{^[ \t]*#(?:[^\n]*\\\n)*[^\n]*}{ $& =~ s/[^\n]//gr }gmer;
    for (declared($code)) {
        my ($line, $name, $is_marked) = @$_;
        if ($records{$name}) { $recorders{$name} = 1 }
        elsif (!$is_marked) { push @bare, "$path:$line: $name" }
    }
}
none('every function of a header that returns a status is ET_NODISCARD', @bare);
none('those that need not be are there', grep { !$recorders{$_} } sort keys %records);
done_testing();
