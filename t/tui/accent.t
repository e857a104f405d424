#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# One accent, used sparingly: on each golden screen what says "here" or "press this" wears
# it, in less than a tenth of the cells that are not blank. VISUAL.md section 1.
use strict;
use warnings;
use FindBin;
use Test::More;

my %accent = map { $_ => 1 } qw(title key focus border_focus mark);
# Lists of keys are all "press this"; screens that are nearly empty are mostly hints.
my $nearly_empty = 400;
my %lists_keys = map { $_ => 1 } qw(help help-search);
my (@much, $screens, %worn);
for my $path (sort glob "$FindBin::Bin/screens/*.txt") {
    my ($name) = $path =~ m{([^/]+)\.txt$};
    open my $in, '<:encoding(UTF-8)', $path or die "$path: $!";
    my (@text, $cells, $accents);
    my $has_roles = 0;
    while (my $line = <$in>) {
        chomp $line;
        if ($has_roles) {
            my ($row, $rest) = $line =~ /^ *(\d+)  (.*)/ or die "$path: $line";
            while ($rest =~ /(\w+)(@\w+)?(?:\+\w+)* (\d+)(?:-(\d+))?/g) {
                my ($role, $from, $to) = ($1, $3, $4 // $3);
                my $part = substr $text[$row - 1], $from - 1, $to - $from + 1;
                my $n = () = ($part // '') =~ /\S/g;
                $worn{$role} += $n;
                $accents += $n if $accent{$role};
            }
        } elsif ($line eq 'roles:') {
            $has_roles = 1;
        } else {
            push @text, $line . ' ' x 500;
            $cells += () = $line =~ /\S/g;
        }
    }
    next if !$has_roles || $cells < $nearly_empty || $lists_keys{$name};
    $screens++;
    $accents //= 0;
    push @much, sprintf '%s: %d of %d cells, %.1f %%', $name, $accents, $cells,
        100 * $accents / $cells
        if $accents >= 0.1 * $cells;
}
cmp_ok($screens, '>', 30, 'golden screens hold roles');
is("@much", '', 'the accent covers less than a tenth of each') or diag(join "\n", @much);
for my $role (qw(rule section key good dim series1 select)) {
    my $word = $role eq 'select' ? 'focus' : $role;
    cmp_ok($worn{$word} // 0, '>', 0, "some of them wear $word");
}
done_testing();
