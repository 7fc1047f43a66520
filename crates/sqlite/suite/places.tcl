# Lets SQLite's own tests look at files that flashwise lays out.
#
# Many of them read, write, measure or delete the bytes of a database, a journal or a log behind SQLite's back. Here the
# commands that they do it with find these bytes where the layout has put them: a database behind its header, a journal
# and a log under their other names, a log's frames in their places (docs/formats/sqlite-layout.md). Plain files are
# left alone. What opens a file as a Tcl channel sees the stored bytes.
#
#   testfixture places.tcl TEST.test ...

namespace eval places {
  # Some tests delete the namespace that expr has its functions in.
  proc positive {value} { return [expr {$value > 0 ? $value : 0}] }

  # The first 512 bytes of a file, or nothing.
  proc head {name} {
    if {![::file_of_tcl isfile $name] || [catch {::open_of_tcl $name rb} channel]} { return "" }
    set bytes [read $channel 512]
    close $channel
    return $bytes
  }

  proc number {bytes at} {
    binary scan $bytes @${at}w value
    return $value
  }

  proc byte {bytes at} {
    binary scan $bytes @${at}cu value
    return $value
  }

  proc text {bytes at} {
    binary scan $bytes @${at}A32 value
    return [string trimright $value \0]
  }

  # How far a database lies behind its header.
  proc shift {name} {
    set bytes [head $name]
    if {[string range $bytes 68 71] eq "flws" && [byte $bytes 18] == 255} { return [number $bytes 176] }
    return 0
  }

  # The stored name of a journal or a log.
  proc stored {name} {
    if {[regexp {^(.*)-(wal|journal)$} $name -> database kind]} {
      if {[::file_of_tcl exists $database-fw$kind] || [shift $database] > 0} { return $database-fw$kind }
    }
    return $name
  }

  # How a log's frames lie: {page begin kind area in_group group headers_per_block}, or nothing.
  proc geometry {name} {
    set bytes [head $name]
    if {![string match "flashwise log layout *" $bytes]} { return "" }
    set unit [number $bytes 168]
    set page [number $bytes 176]
    set frame [expr {$page + 24}]
    set layout [text $bytes 128]
    set in_page [expr {$unit / $frame}]
    if {$layout eq "contained" && $in_page * $frame * 8 >= $unit * 7} {
      return [list $page $unit packed $unit $in_page $unit 0]
    }
    set headers [expr {$layout eq "sparse" ? 1 : 170}]
    set area [expr {(65536 + $unit - 1) / $unit * $unit}]
    set in_group [expr {$area / 4096 * $headers}]
    set group [expr {($area + $in_group * $page + $unit - 1) / $unit * $unit}]
    return [list $page $unit split $area $in_group $group $headers]
  }

  # Where byte AT of SQLite's log is stored, and how many bytes lie together there.
  proc piece {geometry at} {
    lassign $geometry page begin kind area in_group group headers
    if {$at < 32} { return [list [expr {512 + $at}] [expr {32 - $at}]] }
    set behind [expr {$at - 32}]
    set frame [expr {$page + 24}]
    set n [expr {$behind / $frame}]
    set within [expr {$behind % $frame}]
    set start [expr {$begin + $n / $in_group * $group}]
    set n [expr {$n % $in_group}]
    if {$kind eq "packed"} {
      return [list [expr {$start + $n * $frame + $within}] [expr {$frame - $within}]]
    }
    if {$within < 24} {
      set header [expr {$start + $n / $headers * 4096 + $n % $headers * 24}]
      return [list [expr {$header + $within}] [expr {24 - $within}]]
    }
    return [list [expr {$start + $area + $n * $page + $within - 24}] [expr {$frame - $within}]]
  }

  # Length of SQLite's log.
  proc length {geometry size} {
    lassign $geometry page begin kind area in_group group headers
    if {$size < 544} { return 0 }
    set behind [positive [expr {$size - $begin}]]
    set frame [expr {$page + 24}]
    if {$kind eq "packed"} {
      set rest [expr {$behind % $group / $frame}]
    } else {
      set rest [expr {[positive [expr {$behind % $group - $area}]] / $page}]
    }
    return [expr {32 + $frame * ($behind / $group * $in_group + ($rest < $in_group ? $rest : $in_group))}]
  }

  proc size {name} {
    set name [stored $name]
    set size [::file_of_tcl size $name]
    set geometry [geometry $name]
    if {$geometry ne ""} { return [length $geometry $size] }
    return [positive [expr {$size - [shift $name]}]]
  }

  # Copies or renames one file to another; a journal or log of ours stays one.
  proc move {how arguments} {
    set names [lsearch -all -inline -not $arguments -force]
    if {[llength $names] != 2} { return [::file_of_tcl $how {*}$arguments] }
    lassign $names from to
    set from_stored [stored $from]
    if {$from_stored ne $from && [regexp {^(.*)-(wal|journal)$} $to -> database kind]} { set to $database-fw$kind }
    return [::file_of_tcl $how -force $from_stored $to]
  }

  proc run {command name offset rest} {
    set name [stored $name]
    set geometry [geometry $name]
    if {$geometry eq ""} {
      return [::${command}_of_sqlite $name [expr {[shift $name] + $offset}] $rest]
    }
    set is_write [expr {$command eq "hexio_write"}]
    set left [expr {$is_write ? [string length $rest] / 2 : $rest}]
    set answer ""
    while {$left > 0} {
      lassign [piece $geometry $offset] start amount
      if {$amount > $left} { set amount $left }
      if {$is_write} {
        ::hexio_write_of_sqlite $name $start [string range $rest 0 [expr {2 * $amount - 1}]]
        set rest [string range $rest [expr {2 * $amount}] end]
        incr answer $amount
      } else {
        append answer [::hexio_read_of_sqlite $name $start $amount]
      }
      incr offset $amount
      incr left -$amount
    }
    return $answer
  }
}

rename file file_of_tcl
proc file {command args} {
  switch -- $command {
    size { return [places::size [lindex $args 0]] }
    exists { return [file_of_tcl exists [places::stored [lindex $args 0]]] }
    delete {
      set names [list]
      foreach name $args { lappend names $name [places::stored $name] }
      return [file_of_tcl delete {*}[lsort -unique $names]]
    }
    copy - rename { return [places::move $command $args] }
    default { return [uplevel 1 [list file_of_tcl $command {*}$args]] }
  }
}

rename open open_of_tcl
proc open {name args} {
  if {![string match |* $name]} { set name [places::stored $name] }
  return [open_of_tcl $name {*}$args]
}

rename hexio_read hexio_read_of_sqlite
proc hexio_read {name offset amount} { return [places::run hexio_read $name $offset $amount] }
rename hexio_write hexio_write_of_sqlite
proc hexio_write {name offset data} { return [places::run hexio_write $name $offset $data] }

set argv0 [lindex $argv 0]
set argv [lrange $argv 1 end]
source $argv0
