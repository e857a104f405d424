#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# A checkpoint read by somebody else: its files are what the safetensors format says
# (https://huggingface.co/docs/safetensors), whatever layout the tensors had in memory.
# t/unit/checkpoint writes them.
use strict;
use warnings;
use File::Temp qw(tempdir);
use JSON::PP;
use Test::More;

my $build = $ENV{ET_BUILDDIR} // '.';
my $folder = tempdir(CLEANUP => 1) . '/checkpoints';
is(system("$build/t/unit/checkpoint", 'write', $folder), 0, 'a checkpoint is written');
my $step = "$folder/step-000000000004";

sub slurp {
    open my $f, '<:raw', $_[0] or die "$_[0]: $!";
    local $/;
    return <$f>;
}

my %size = (F32 => 4, F64 => 8, BF16 => 2, F16 => 2, I32 => 4, I64 => 8, U8 => 1);

# {name: {dtype, shape, bytes}} of a file, or a reason to fail.
sub tensors {
    my ($bytes) = @_;
    my $n = unpack 'Q<', $bytes;
    die 'the header is longer than the file' if 8 + $n > length $bytes;
    my $header = JSON::PP->new->utf8->decode(substr $bytes, 8, $n);
    my $data = substr $bytes, 8 + $n;
    delete $header->{__metadata__};
    my $end = 0;
    for my $t (sort { $a->{data_offsets}[0] <=> $b->{data_offsets}[0]
                          || $a->{data_offsets}[1] <=> $b->{data_offsets}[1] }
               values %$header) {
        my ($from, $to) = @{$t->{data_offsets}};
        my $count = 1;
        $count *= $_ for @{$t->{shape}};
        die 'a hole or an overlap' if $from != $end;
        die 'not as long as its shape' if $to - $from != $count * $size{$t->{dtype}};
        $t->{bytes} = substr $data, $from, $to - $from;
        $end = $to;
    }
    die 'bytes behind the last tensor' if $end != length $data;
    return $header;
}

my $manifest = JSON::PP->new->utf8->decode(slurp("$step/MANIFEST"));
is($manifest->{label}, 'ep2-ba4', 'MANIFEST is JSON, with the label');
is(join(' ', sort map { $_->{name} } @{$manifest->{files}}),
   join(' ', map { "$_-00000.safetensors" } qw(model optim state)), 'and the files');
is(join(' ', sort { $a cmp $b } map { s{.*/}{}r } glob "$step/*"),
   join(' ', 'MANIFEST', map { "$_-00000.safetensors" } qw(model optim state)),
   'which are all there are');
my %file;
for my $f (@{$manifest->{files}}) {
    my $bytes = slurp("$step/$f->{name}");
    is(length $bytes, $f->{bytes}, "$f->{name} has the size that MANIFEST says");
    my $t = eval { tensors($bytes) };
    is($@, '', "$f->{name} is a safetensors file");
    is(join("\n", sort keys %$t), join("\n", sort keys %{$f->{tensors}}),
       'with the tensors that MANIFEST says');
    $file{$f->{name} =~ s/-.*//r} = $t;
}

# Weights have the bare names of the model, everything else its path.
is(join(' ', @{$file{model}{'filter.f32'}{shape}}), '2 3 5 4', 'a filter is K C R S');
for my $dtype (qw(f32 f64 bf16 f16 i32 i64 u8)) {
    my ($m, $o) = ($file{model}{"filter.$dtype"}, $file{optim}{"optimizer/filter.$dtype"});
    ok($m->{bytes} eq $o->{bytes} && length $m->{bytes} == 120 * $size{uc $dtype}
           && $m->{dtype} eq uc $dtype,
       "$dtype: the same tensor is the same bytes in the other file");
}
my @numbers = unpack 'q<*', $file{state}{'hooks/one/i64'}{bytes};
is("@numbers", '-9223372036854775808 -1 9223372036854775807', 'numbers are exact');
is(join(' ', unpack 'l<*', $file{state}{'hooks/list'}{bytes}), '0 1 4 9 16', 'lists too');
is($file{state}{'hooks/text'}{bytes}, 'fifteen letters', 'and text is its bytes');

# Counted weights: the element at k, c, r, s has the value of its place in row-major
# order, though it lay channels-last in memory.
my @places = unpack 'f<*', $file{model}{'places'}{bytes};
is("@places", join(' ', 0 .. 2 * 3 * 5 * 4 - 1),
   'what lay channels-last is row-major in the file');
done_testing();
