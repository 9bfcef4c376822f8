//! `cjson`, `cmsgpack`, `struct`, `bit` and patterns.

use crate::harness::Harness;

#[test]
fn json_is_written_and_read() {
    Harness::new().play(
        r#"return cjson.encode({1, 2.5, 'a', true, cjson.null}) -> [1,2.5,"a",true,null]
         return cjson.encode({a = {b = 1}}) -> {"a":{"b":1}}
         return cjson.encode({}) -> {}
         return cjson.encode('a/b"\n\1') -> "a\/b\"\n\u0001"
         return cjson.encode({[1] = 'a', [3] = 'c'}) -> ["a",null,"c"]
         return cjson.encode({[1] = 1, x = 2}) -> {"1":1,"x":2}
         return cjson.encode(0.1) -> 0.1
         return cjson.encode(1e100) -> 1e+100
         return cjson.decode('[1, [2], {"a": "b"}]')[3].a -> b
         return tostring(cjson.decode('null') == cjson.null) -> true
         return cjson.decode('"\\u00e9\\ud83d\\ude00"') -> é😀
         return table.concat(cjson.decode('[0.0, -5e3, -1, 0.3e-3, 1023.2, 0e10]'), ' ')
         -> 0 -5000 -1 0.0003 1023.2 0
         cjson.encode_sparse_array(true); return cjson.encode({[1] = 1, [1000] = 2})
         -> {"1":1,"1000":2}
         cjson.encode_invalid_numbers('null'); return cjson.encode({1 / 0}) -> [null]
         return cjson.encode_max_depth() -> 1000
         cjson.encode_max_depth(1); return select(2, pcall(cjson.encode, {{1}}))
         -> Cannot serialise, excessive nesting (2)
         return cjson.encode_max_depth() -> 1000"#,
    );
    let mut harness = Harness::new();
    for (code, expected) in [
        ("cjson.decode('[1,')", "Expected value but found T_END at character 3"),
        ("cjson.decode('{1:2}')", "Expected object key string but found T_NUMBER at character 2"),
        ("cjson.decode('[1 2]')", "Expected comma or array end but found T_NUMBER"),
        ("cjson.decode('nope')", "Expected value but found invalid token at character 1"),
        ("cjson.decode('\"a')", "Expected value but found unexpected end of string"),
        ("cjson.encode({[1] = 1, [1000] = 2})", "Cannot serialise table: excessively sparse array"),
        ("cjson.encode({0 / 0})", "Cannot serialise number: must not be NaN or Inf"),
        (
            "cjson.encode({[true] = 1})",
            "Cannot serialise boolean: table key must be a number or string",
        ),
        ("cjson.encode_max_depth(0)", "expected integer between 1 and 2147483647"),
    ] {
        let text = harness.text(code);
        assert!(text.contains(expected), "{code}: {text}");
    }
}

#[test]
fn messages_are_packed_and_unpacked() {
    Harness::new().play(
        "local h = '' for c in string.gmatch(cmsgpack.pack(0.1), '.') do
         h = h .. string.format('%02x', string.byte(c)) end return h -> cb3fb999999999999a
         local h = '' for c in string.gmatch(cmsgpack.pack(-1099511627776), '.') do
         h = h .. string.format('%02x', string.byte(c)) end return h -> d3ffffff0000000000
         return #cmsgpack.pack(127) + #cmsgpack.pack(-33) * 10 + #cmsgpack.pack(70000) * 100 -> 521
         return cmsgpack.unpack(cmsgpack.pack({1, 'a', {2}})) -> [1 a [2]]
         return cmsgpack.unpack(cmsgpack.pack({a = 'b'})).a -> b
         return {cmsgpack.unpack(cmsgpack.pack(1, 2, 3))} -> [1 2 3]
         return {cmsgpack.unpack_one(cmsgpack.pack(1, 2), 0)} -> [1 1]
         return {cmsgpack.unpack_limit(cmsgpack.pack(1, 2, 3), 2, 1)} -> [-1 2 3]
         return {pcall(cmsgpack.unpack, '\\206\\1')} -> [nil Missing bytes in input.]
         return {pcall(cmsgpack.unpack, '\\193')} -> [nil Bad data format in input.]
         local t = {} for i = -40000, 40000, 7 do t[#t + 1] = i end
         local u = cmsgpack.unpack(cmsgpack.pack(t))
         for i = 1, #t do assert(t[i] == u[i]) end return 'fine' -> fine",
    );
}

#[test]
fn structs_are_packed_and_unpacked() {
    Harness::new().play(
        "return {struct.unpack('<HI', struct.pack('<HI', 1, 70000))} -> [1 70000 7]
         return {struct.unpack('>hBd', struct.pack('>hBd', -2, 255, 0.5))} -> [-2 255 0 12]
         return {struct.unpack('sc2', struct.pack('sc2', 'abc', 'de'))} -> [abc de 7]
         return {struct.unpack('Bc0', struct.pack('Bc0', 3, 'abc'))} -> [abc 5]
         return struct.size('!8Bd') -> 16
         return #struct.pack('!4Bi', 1, 2) -> 8
         return {struct.unpack('i3', struct.pack('i3', -5))} -> [-5 4]
         return {pcall(struct.size, 's')}
         -> [nil bad argument #1 to 'size' (option 's' has no fixed size)]
         return {pcall(struct.unpack, 'I', 'abc')}
         -> [nil bad argument #2 to 'unpack' (data string too short)]
         return {pcall(struct.pack, 'y')} -> [nil invalid format option 'y']
         return {pcall(struct.unpack, 'B', 'abc', 1e300)}
         -> [nil bad argument #2 to 'unpack' (data string too short)]",
    );
}

#[test]
fn bits_are_of_32_bit_numbers() {
    Harness::new().play(
        "return bit.band(0xff, 0x0f, 7) -> 7
         return bit.bor(1, 2, 4) -> 7
         return bit.bxor(1, 3) -> 2
         return bit.bnot(0) -> -1
         return bit.lshift(1, 31) -> -2147483648
         return bit.rshift(-1, 28) -> 15
         return bit.arshift(-256, 4) -> -16
         return bit.rol(0x12345678, 12) -> 1164411171
         return bit.bswap(0x12345678) -> 2018915346
         return bit.tohex(255) -> 000000ff
         return bit.tohex(255, -4) -> 00FF
         return bit.tobit(0xffffffff) -> -1
         return bit.band('5', 4) -> 4",
    );
}

#[test]
fn patterns_are_those_of_lua() {
    Harness::new().play(
        "return {string.find('hello world', 'o w')} -> [5 7]
         return {string.find('a.b', '.', 1, true)} -> [2 2]
         return {string.find('hello', 'l+')} -> [3 4]
         return {string.find('hello', '(l)(l)')} -> [3 4 l l]
         return {string.find('hello', '()ll()')} -> [3 4 3 5]
         return {string.find('hello', '')} -> [1 0]
         return {string.find('hello', '', 10)} -> [6 5]
         return {string.find('hello', 'l', -2)} -> [4 4]
         return tostring(string.find('hello', '^l')) -> nil
         return string.match('key = value', '(%w+)%s*=%s*(%w+)') -> key
         return string.match('2024-01-02', '%d+', 6) -> 01
         return {string.gsub('hello', 'l', 'L')} -> [heLLo 2]
         return {string.gsub('hello', 'l', 'L', 1)} -> [heLlo 1]
         return {string.gsub('abc', '%w', '%0%0')} -> [aabbcc 3]
         return {string.gsub('abc', '', '-')} -> [-a-b-c- 4]
         return {string.gsub('hello world', '(%w+)', '<%1>')} -> [<hello> <world> 2]
         return {string.gsub('abc', '%w', {a = '1', b = true and 'x'})} -> [1xc 3]
         return {string.gsub('abc', '%w', function(c) if c == 'b' then return 'B' end end)}
         -> [aBc 3]
         return {string.gsub('abc', '^a', 'x')} -> [xbc 1]
         return {pcall(string.gsub, 'a', 'a', true)}
         -> [nil bad argument #3 to 'gsub' (string/function/table expected)]
         local t = {} for k, v in string.gmatch('a=1, b=2', '(%w+)=(%w+)') do
         t[#t + 1] = k .. v end return t -> [a1 b2]
         local n = 0 for _ in string.gmatch('abc', '') do n = n + 1 end return n -> 4
         return ('x'):rep(3) -> xxx
         return ('%d'):format(3.0) -> 3
         return {pcall(string.find, 'a', '[')} -> [nil malformed pattern (missing ']')]",
    );
}
