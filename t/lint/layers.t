#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# Calls go down: kernels <- core <- dist <- tui <- cli. A layer includes only itself,
# those below it and the public headers; only the CPU device knows oneDNN.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Lint;
use Test::More;

my @layers = qw(kernels core dist tui cli);
my %rank = map { $layers[$_] => $_ } 0 .. $#layers;

# Headers of libraries, and the folder that alone may include them.
my %only = (
    'dnnl' => 'src/kernels/cpu',
    'omp.h' => 'src/kernels/cpu',
    'cuda' => 'src/kernels/cuda',
    'cudnn' => 'src/kernels/cuda',
    'cublas' => 'src/kernels/cuda',
    'nccl.h' => 'src/dist',
    'gloo/' => 'src/dist',
    'zmq' => 'src/dist',
    # Without a supervisor the run itself writes its log of events (DESIGN.md section 6).
    'msgpack' => 'src/(dist|core/(journal|library))',
    'sqlite3' => 'src/core/library',
    'jpeglib.h' => 'src/core/image',
    'webp/' => 'src/core/image',
    'png.h' => 'src/core/image',
    'zstd.h' => 'src/core/data',
    'curses' => 'src/tui',
);

# The rooms of a folder, and which of the others here each may use.
my %rooms = (
    'src/core' => {
        journal => [],
        library => [qw(journal)],
        assemble => [qw(library journal)],
    },
    'src/dist' => {
        wire => [],
        comm => [qw(wire)],
        run => [qw(wire comm)],
        hub => [qw(wire)],
        # etd_machine_resident
        worker => [qw(wire hub run)],
    },
);
# PATH's house and room; nothing where it is in no such folder.
sub room_of {
    my ($path) = @_;
    my ($house) = grep { index($path, "$_/") == 0 } sort keys %rooms or return;
    return ($house, $path =~ m{^\Q$house\E/(\w+)/} ? $1 : '');
}
# May what is at FROM use what is at TO?
sub may_use {
    my ($from, $to) = @_;
    my ($house, $room) = room_of($from) or return 1;
    my ($other, $used) = room_of($to) or return 1;
    return 1 if $house ne $other || $room eq $used;
    my ($may, $known) = map { $rooms{$house}{$_} } $room, $used;
    return !$may || !$known || !!grep { $_ eq $used } @$may;
}

my (@up, @back, @lost, @foreign, @device, @public);
for my $path (files(qr/\.(c|h|cc|cu|def)$/, 'src', 'include')) {
    my ($layer) = $path =~ m{^src/(\w+)/};
    my ($house, $room) = room_of($path);
    push @lost, $path if $path =~ m{^src/dist/} && !$rooms{$house}{$room};
    my $line = 0;
    for (split /\n/, code($path, 1)) {
        $line++;
        next unless /^\s*#\s*include\s*[<"]([^>"]+)[>"]/;
        my $header = $1;
        my ($target) = $header =~ m{^(kernels|core|dist|tui|cli)/};
        push @up, "$path:$line: $header"
            if $layer && $target && $rank{$target} > $rank{$layer};
        push @back, "$path:$line: $header" if !may_use($path, "src/$header");
        push @device, "$path:$line: $header"
            if $header =~ m{^kernels/(cpu|cuda)/} && index($path, "src/kernels/$1/") != 0;
        push @public, "$path:$line: $header"
            if $path =~ /^include/ && $target;
        for my $library (sort keys %only) {
            push @foreign, "$path:$line: $header belongs to $only{$library}"
                if $header =~ m{(^|/)\Q$library\E} && $path !~ m{^$only{$library}/};
        }
    }
}
none('no file includes a header of a layer above its own', @up);
none('every file of src/dist is in one of its rooms', @lost);
none('no room includes a header of one that it may not use', @back);
none('public headers include no private ones', @public);
none("a device's headers stay in its folder", @device);
none("a library's headers stay in the folder that adapts it", @foreign);

# A part of the trainer sees what core/trainer/part.h gives it, not the trainer or
# another part.
my $parts = 'src/core/trainer/parts.def';
my @types = code($parts) =~ /^PART\(\w+, (\w+)\)/mg;
my %part;
for my $path (files(qr/\.c$/, 'src/core/trainer')) {
    my ($type) = code($path) =~ /^const struct eti_part_type (\w+) = /m or next;
    $part{$type} = $path;
}
ok(@types && @types == keys %part && !grep({ !$part{$_} } @types),
   "each row of $parts has its file");
none('no part of the trainer looks into it',
     grep { code($part{$_}, 1) =~ m{"core/trainer/trainer_impl\.h"} } sort keys %part);

# What an archive may leave to others, by prefix (STYLE.md section 2).
my %forbidden = (
    'libetude-tui.a' => qr/^(cli_|main$)/,
    'libetude-dist.a' => qr/^(tui_|cli_|main$)/,
    'libetude-comm.a' => qr/^(tui_|cli_|main$)/,
    'libetude-core.a' => qr/^(etd_|tui_|cli_|dnnl_|GOMP_|omp_|main$)/,
    'libetude-ref.a' => qr/^(eti_|etd_|tui_|cli_|dnnl_|GOMP_|omp_|main$)/,
);
for my $archive (sort keys %forbidden) {
    SKIP: {
        skip "$archive is not built", 1 unless -f "$build/$archive";
        my ($defined, $undefined) = defined_symbols("$build/$archive");
        none("$archive calls nothing above it",
             grep { !$defined->{$_} && $_ =~ $forbidden{$archive} } sort keys %$undefined);
    }
}

# Rooms again, by what their objects call: a header of one room may declare another's.
for my $house (sort keys %rooms) {
    SKIP: {
        my %from = map { my $room = $_; map { $_ => $room } glob "$build/$house/$room/*.o" }
            sort keys %{$rooms{$house}};
        skip "$house is not built", 1 unless %from;
        my (%defined, %undefined);
        for my $object (sort keys %from) {
            my ($has, $needs) = defined_symbols($object);
            $defined{$_} = $from{$object} for keys %$has;
            push @{$undefined{$_}}, $object for keys %$needs;
        }
        my @calls;
        for my $name (sort keys %undefined) {
            my $used = $defined{$name} // next;
            push @calls, map { substr($_, length($build) + 1) . " calls $name of $used" }
                grep { !may_use("$house/$from{$_}/", "$house/$used/") } @{$undefined{$name}};
        }
        none("no room of $house calls one that it may not use", @calls);
    }
}

SKIP: {
    my $module = "$build/.libs/libetude-cpu.so";
    skip 'the CPU device is not built', 1 unless -f $module;
    my @exported = grep { !/^(_init|_fini|_edata|_end|__bss_start)$/ }
        map { / [TDRBVW] (\w+)/ ? $1 : () } `nm -D --defined-only '$module'`;
    is("@exported", 'et_device_module', 'a device module exports its table and nothing else');
}
done_testing();
