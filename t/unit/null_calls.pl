#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# null_calls.pl: reads the public headers, preprocessed, from standard input and writes
# null_calls.h, a function for each that they declare; see t/unit/null_calls.c.
use strict;
use warnings;

my $text = '';
my $ours = 0;
while (<STDIN>) {
    $ours = m{include/etude/|"(?:\./)*etude/} if /^# \d+ "/;
    $text .= $_ if $ours && !/^#/;
}

# What is inside braces is no declaration of a function.
$text =~ s/extern "C" \{//g;
1 while $text =~ s/\{[^{}]*\}/;/g;
$text =~ s/__attribute__\s*\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)//g;
$text =~ s/\s+/ /g;

# (A device module has the one that is left out.)
my %seen = (et_device_module => 1);
my @calls;
for my $declaration (split /;/, $text) {
    next if $declaration =~ /\b(?:typedef|static|extern)\b/;
    next unless $declaration =~ /^\s*(.*?)\b(et_\w+)\s*\((.*)\)\s*$/;
    my ($result, $name, $list) = ($1, $2, $3);
    next if $seen{$name}++ || $result =~ /[(=]/ || $result !~ /\w/;
    my (@types, @names);
    for my $one (parameters($list)) {
        next if $one eq 'void' || $one eq '...';
        push @types, type_of($one);
        push @names, $one =~ /(\w+)(?:\[[^\]]*\])?$/ ? $1 : '';
    }
    push @calls, [$result, $name, $list =~ /\.\.\.\s*$/ ? 1 : 0, \@names, @types];
}

print "/* null_calls.h: written by t/unit/null_calls.pl. */\n";
for my $i (0 .. $#calls) {
    my ($result, $name, $more, $names, @types) = @{$calls[$i]};
    my @values;
    for my $k (0 .. $#types) {
        my $type = $types[$k];
        if ($type =~ /\*|_fn\b/) {
            my $pointer = $type =~ /\*/ ? $type : "$type *";
            push @values, "null == $k ? NULL : ($pointer)value_of(\"$name\", \"$type\")";
        } elsif ($type =~ /^struct (\w+)$/) {
            push @values, "(struct $1){0}";
        } elsif ($type eq 'va_list') {
            push @values, 'nothing';
        } else {
            push @values, "($type)number_of(\"$names->[$k]\")";
        }
    }
    push @values, '"x"' if $more;    # what "%s" is
    $result =~ s/^\s+|\s+$//g;
    my $call = "$name(" . join(', ', @values) . ')';
    print "static void\ncall_$i(int null)\n{\n    (void)null;\n";
    if ($result eq 'et_status') {
        print "    judge(\"$name\", $call);\n";
    } elsif ($result eq 'void') {
        print "    $call;\n";
    } else {
        print "    (void)$call;\n";
    }
    print "}\n\n";
}
print "static const struct call calls[] = {\n";
for my $i (0 .. $#calls) {
    my (undef, $name, undef, undef, @types) = @{$calls[$i]};
    my $pointers = 0;
    for my $k (0 .. $#types) {
        $pointers |= 1 << $k if $types[$k] =~ /\*|_fn\b/;
    }
    print "    {\"$name\", call_$i, $pointers},\n";
}
print "};\n";

# The parameters of LIST, one by one.
sub parameters {
    my ($list) = @_;
    my ($depth, $one, @all) = (0, '');
    for my $c (split //, $list) {
        $depth++ if $c eq '(';
        $depth-- if $c eq ')';
        if ($c eq ',' && $depth == 0) {
            push @all, $one;
            $one = '';
        } else {
            $one .= $c;
        }
    }
    push @all, $one;
    return map { s/^\s+|\s+$//gr } @all;
}

# The type of a parameter, its name left out.
sub type_of {
    my ($one) = @_;
    return 'void *' if $one =~ /\(\*/;    # a pointer to a function
    my $is_array = $one =~ s/\[[^\]]*\]$//;
    if ($one =~ /^(.*[*\s])(\w+)$/ && $1 !~ /^\s*(?:struct|enum|const)\s*$/ &&
        $2 !~ /^(?:int|long|char)$/) {
        $one = $1;
    }
    $one =~ s/\s+$//;
    $one .= ' *' if $is_array;
    return $one;
}
