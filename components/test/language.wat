;; A component for tests. The first character of a script says what it does, and the rest is what it
;; does that with:
;;
;;   v  return the rest, which is JSON       f  fail with the rest as the message
;;   p  print the rest                       t  trap
;;   c  call the first tool of the script with the rest as the arguments, and return the result
;;   2  make that call twice at once, and return the result that comes last
;;   w  wait for ten seconds                 s  wait for nothing
;;   l  loop for ever                        m  ask for more and more memory
;;   d  recurse for ever                     o  read beyond the end of the memory
;;
;; Every other script has no value.
(component
  (import "toolgate:script/host@0.1.0" (instance $host
    (export "submit" (func (param "tool" string) (param "arguments" string) (result u64)))
    (export "wait" (func
      (param "until" (option u64))
      (result (option (tuple u64 (result string (error string)))))))
    (export "print" (func (param "text" string)))
    (export "now" (func (result u64)))
    (export "random" (func (result u64)))))

  (core module $memory
    (memory (export "memory") 4)
    (global $next (mut i32) (i32.const 4096))
    (func (export "realloc") (param i32 i32 i32) (param $size i32) (result i32)
      (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
      (global.set $next (i32.add (local.get $at) (local.get $size)))
      (local.get $at)))
  (core instance $memory (instantiate $memory))

  (core func $submit (canon lower (func $host "submit") (memory (core memory $memory "memory"))))
  (core func $wait
    (canon lower (func $host "wait") (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
  (core func $print (canon lower (func $host "print") (memory (core memory $memory "memory"))))
  (core func $now (canon lower (func $host "now")))

  (core module $language
    (import "memory" "memory" (memory 4))
    (import "host" "submit" (func $submit (param i32 i32 i32 i32) (result i64)))
    (import "host" "wait" (func $wait (param i32 i64 i32)))
    (import "host" "print" (func $print (param i32 i32)))
    (import "host" "now" (func $now (result i64)))

    ;; What `run` returns is at 16, and what `wait` returns at 64.
    (func $value (param $text i32) (param $length i32) (result i32)
      (i32.store8 (i32.const 16) (i32.const 0))
      (i32.store8 (i32.const 20) (i32.const 1))
      (i32.store (i32.const 24) (local.get $text))
      (i32.store (i32.const 28) (local.get $length))
      (i32.const 16))
    (func $nothing (result i32)
      (i32.store8 (i32.const 16) (i32.const 0))
      (i32.store8 (i32.const 20) (i32.const 0))
      (i32.const 16))
    (func $failure (param $text i32) (param $length i32) (result i32)
      (i32.store8 (i32.const 16) (i32.const 1))
      (i32.store (i32.const 20) (local.get $text))
      (i32.store (i32.const 24) (local.get $length))
      (i32.store (i32.const 28) (i32.const 0))
      (i32.store (i32.const 32) (i32.const 0))
      (i32.const 16))
    (func $call (param $tools i32) (param $text i32) (param $length i32)
      (drop (call $submit
        (i32.load (local.get $tools)) (i32.load offset=4 (local.get $tools))
        (local.get $text) (local.get $length))))
    (func $outcome (result i32)
      (call $wait (i32.const 0) (i64.const 0) (i32.const 64))
      (if (result i32) (i32.load8_u (i32.const 80))
        (then (call $failure (i32.load (i32.const 84)) (i32.load (i32.const 88))))
        (else (call $value (i32.load (i32.const 84)) (i32.load (i32.const 88))))))
    (func $deeper (param i32) (result i32)
      (i32.add (call $deeper (i32.add (local.get 0) (i32.const 1))) (i32.const 1)))

    (func (export "run") (param $script i32) (param $length i32) (param $tools i32) (param $count i32)
      (result i32)
      (local $what i32)
      (if (i32.eqz (local.get $length)) (then (return (call $nothing))))
      (local.set $what (i32.load8_u (local.get $script)))
      (local.set $script (i32.add (local.get $script) (i32.const 1)))
      (local.set $length (i32.sub (local.get $length) (i32.const 1)))
      (if (i32.eq (local.get $what) (i32.const 0x76)) ;; v
        (then (return (call $value (local.get $script) (local.get $length)))))
      (if (i32.eq (local.get $what) (i32.const 0x66)) ;; f
        (then (return (call $failure (local.get $script) (local.get $length)))))
      (if (i32.eq (local.get $what) (i32.const 0x70)) ;; p
        (then (call $print (local.get $script) (local.get $length))))
      (if (i32.eq (local.get $what) (i32.const 0x74)) ;; t
        (then (unreachable)))
      (if (i32.eq (local.get $what) (i32.const 0x63)) ;; c
        (then
          (if (i32.eqz (local.get $count)) (then (unreachable)))
          (call $call (local.get $tools) (local.get $script) (local.get $length))
          (return (call $outcome))))
      (if (i32.eq (local.get $what) (i32.const 0x32)) ;; 2
        (then
          (call $call (local.get $tools) (local.get $script) (local.get $length))
          (call $call (local.get $tools) (local.get $script) (local.get $length))
          (drop (call $outcome))
          (return (call $outcome))))
      (if (i32.eq (local.get $what) (i32.const 0x77)) ;; w
        (then
          (call $wait
            (i32.const 1) (i64.add (call $now) (i64.const 10_000_000_000)) (i32.const 64))))
      (if (i32.eq (local.get $what) (i32.const 0x73)) ;; s
        (then (return (call $outcome))))
      (if (i32.eq (local.get $what) (i32.const 0x6c)) ;; l
        (then (loop $again (br $again))))
      (if (i32.eq (local.get $what) (i32.const 0x6d)) ;; m
        (then (loop $again (drop (memory.grow (i32.const 16))) (br $again))))
      (if (i32.eq (local.get $what) (i32.const 0x64)) ;; d
        (then (drop (call $deeper (i32.const 0)))))
      (if (i32.eq (local.get $what) (i32.const 0x6f)) ;; o
        (then (drop (i32.load (i32.const 0x7fff_0000)))))
      (call $nothing)))
  (core instance $language (instantiate $language
    (with "memory" (instance $memory))
    (with "host" (instance
      (export "submit" (func $submit))
      (export "wait" (func $wait))
      (export "print" (func $print))
      (export "now" (func $now))))))

  (type $tool-record (record (field "name" string) (field "parameters" (list string))))
  (export $tool "tool" (type $tool-record))
  (type $frame-record
    (record (field "function" string) (field "line" u32) (field "column" u32)))
  (export $frame "frame" (type $frame-record))
  (type $failure-record (record (field "message" string) (field "stack" (list $frame))))
  (export $failure "failure" (type $failure-record))
  (func (export "run")
    (param "script" string) (param "tools" (list $tool))
    (result (result (option string) (error $failure)))
    (canon lift (core func $language "run")
      (memory (core memory $memory "memory")) (realloc (core func $memory "realloc")))))
