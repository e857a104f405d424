#!/usr/bin/env perl
# The mechanical part of STYLE.md: blanks, widths, lengths, and no promises in comments.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Lint;
use Test::More;

my $columns = 100; # .clang-format asks for 88; tables may run a little over
my $lines = 700;   # STYLE.md section 6: past 600, ask which second subject lives here

my @folders = qw(src include t bench examples recipes man tools);
my @c = files(qr/\.(c|h|def|cc|cu)$/, @folders);
# (What fuzz targets begin with is as odd as it is meant to be.)
my @text = (@c, grep { !m{^t/fuzz/} } files(qr/\.(am|t|pm|py|sh|yaml|[1-9])$/, @folders),
            files(qr/./, 'doc'),
            grep { -f "$root/$_" } qw(configure.ac Makefile.am bootstrap README.md HACKING NEWS AUTHORS));

my (@tabs, @wide, @blanks, @ends, @promises, @long);
my %is_c = map { $_ => 1 } @c;
for my $path (@text) {
    my $text = slurp($path);
    my @line = split /\n/, $text;
    push @ends, $path if length $text && $text !~ /[^\n]\n\z/;
    push @long, sprintf '%s: %d lines', $path, scalar @line
        if $path =~ /^src/ && @line > $lines;
    for my $i (0 .. $#line) {
        my $at = "$path:" . ($i + 1);
        push @blanks, $at if $line[$i] =~ /[ \t\r]$/;
        push @promises, $at
            if $path ne 't/lint/style.t' && $line[$i] =~ /\b(TODO|FIXME|XXX)\b/;
        next unless $is_c{$path};
        push @tabs, $at if $line[$i] =~ /\t/;
        utf8::decode(my $wide = $line[$i]);
        push @wide, $at if length $wide > $columns;
    }
}
none('C is indented with spaces', @tabs);
none("C has at most $columns columns", @wide);
none('no line ends in blanks', @blanks);
none('every file ends in one newline', @ends);
none('known gaps are NEEDSWORK sentences', @promises);
none("no source has more than $lines lines", @long);
done_testing();
