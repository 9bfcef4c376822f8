-- Numbers ----------------------------------------------------------------------------------------

-- Whether a script runs, and not the code of a library that is being loaded.
local runs = false

math.random = function(...)
    if not runs then error('math.random can only be called inside a script invocation', 2) end
    local share, count = native.random(), select('#', ...)
    if count == 0 then return share end
    local low, high = ...
    low = floor(check_number(low, 1, 'random'))
    if count == 1 then
        if low < 1 then bad_argument(1, 'random', 'interval is empty') end
        return floor(share * low) + 1
    end
    if count > 2 then error('wrong number of arguments', 2) end
    high = floor(check_number(high, 2, 'random'))
    if low > high then bad_argument(2, 'random', 'interval is empty') end
    return floor(share * (high - low + 1)) + low
end

math.randomseed = function(seed)
    if not runs then error('math.randomseed can only be called inside a script invocation', 2) end
    native.random_seed(check_number(seed, 1, 'randomseed'))
end

local bit = {}
for _, name in next, {'bnot', 'bswap', 'tobit'} do
    bit[name] = function(value)
        return native.bit_one(name, check_number(value, 1, name))
    end
end
for _, name in next, {'lshift', 'rshift', 'arshift', 'rol', 'ror'} do
    bit[name] = function(value, by)
        return native.bit_two(name, check_number(value, 1, name), check_number(by, 2, name))
    end
end
for _, name in next, {'band', 'bor', 'bxor'} do
    bit[name] = function(...)
        local result = native.bit_one('tobit', check_number((...), 1, name))
        for at = 2, select('#', ...) do
            result = native.bit_two(name, result, check_number((select(at, ...)), at, name))
        end
        return result
    end
end
bit.tohex = function(value, digits)
    return native.bit_hexadecimal(
        check_number(value, 1, 'tohex'), digits and check_number(digits, 2, 'tohex'))
end

-- JSON -------------------------------------------------------------------------------------------

local json
local function reset_json()
    json = {
        encode_max_depth = 1000, decode_max_depth = 1000, encode_number_precision = 14,
        encode_invalid_numbers = 0, decode_invalid_numbers = 1, encode_keep_buffer = 1,
        sparse_converts = false, sparse_ratio = 2, sparse_safe = 10,
    }
end

local cjson = {null = native.null, _NAME = 'cjson', _VERSION = '2.1.0'}

cjson.encode = function(...)
    if select('#', ...) ~= 1 then bad_argument(1, 'encode', 'expected 1 argument') end
    return (finish(native.json_encode((...), json)))
end

cjson.decode = function(...)
    if select('#', ...) ~= 1 then bad_argument(1, 'decode', 'expected 1 argument') end
    local text = check_string((...), 1, 'decode')
    local invalid = json.decode_invalid_numbers == 1
    return (finish(native.json_decode(text, json.decode_max_depth, invalid)))
end

local function setting_of_number(name, most)
    cjson[name] = function(value)
        if value ~= nil then
            local number = tonumber(value)
            if not number or number < 1 or number > most or number ~= floor(number) then
                bad_argument(1, name, 'expected integer between 1 and ' .. most)
            end
            json[name] = number
        end
        return json[name]
    end
end
setting_of_number('encode_max_depth', 2147483647)
setting_of_number('decode_max_depth', 2147483647)
setting_of_number('encode_number_precision', 14)

local function setting_of_choice(name, choices)
    cjson[name] = function(value)
        if value ~= nil then
            local choice = choices[value]
            if not choice then
                bad_argument(1, name, "invalid option '" .. tostring(value) .. "'")
            end
            json[name] = choice
        end
        if json[name] == 2 then return 'null' end
        return json[name] == 1
    end
end
setting_of_choice('encode_invalid_numbers', {[false] = 0, [true] = 1, off = 0, on = 1, null = 2})
setting_of_choice('decode_invalid_numbers', {[false] = 0, [true] = 1, off = 0, on = 1})
setting_of_choice('encode_keep_buffer', {[false] = 0, [true] = 1, off = 0, on = 1})

cjson.encode_sparse_array = function(converts, ratio, safe)
    if converts ~= nil then json.sparse_converts = converts == true or converts == 'on' end
    if ratio ~= nil then json.sparse_ratio = check_number(ratio, 2, 'encode_sparse_array') end
    if safe ~= nil then json.sparse_safe = check_number(safe, 3, 'encode_sparse_array') end
    return json.sparse_converts, json.sparse_ratio, json.sparse_safe
end

-- MessagePack and layouts ------------------------------------------------------------------------

local cmsgpack = {
    _NAME = 'cmsgpack', _VERSION = 'lua-cmsgpack 0.4.0', _DESCRIPTION = 'MessagePack for Lua',
}

cmsgpack.pack = function(...)
    local count = select('#', ...)
    if count == 0 then bad_argument(0, 'pack', 'MessagePack pack needs input.') end
    return (finish(native.message_pack({...}, count)))
end

local function unpack_message(text, most, from, name)
    text = check_string(text, 1, name)
    if from < 0 or most < 0 then
        error('Invalid request to unpack with offset of ' .. from .. ' and limit of ' .. #text ..
            '.', 3)
    elseif from > #text then
        error('Start offset ' .. from .. ' greater than input length ' .. #text .. '.', 3)
    end
    local fine, found = native.message_unpack(text, from, most)
    if not fine then error(found, 3) end
    return found
end

cmsgpack.unpack = function(text)
    local found = unpack_message(text, 0, 0, 'unpack')
    return unpack(found, 1, found.n)
end

cmsgpack.unpack_one = function(text, from)
    local found = unpack_message(text, 1, check_whole(from or 0, 2, 'unpack_one'), 'unpack_one')
    return found.at, unpack(found, 1, found.n)
end

cmsgpack.unpack_limit = function(text, most, from)
    most = check_whole(most, 2, 'unpack_limit')
    local found =
        unpack_message(text, most, check_whole(from or 0, 3, 'unpack_limit'), 'unpack_limit')
    return found.at, unpack(found, 1, found.n)
end

local struct = {}

struct.pack = function(layout, ...)
    return (finish(native.struct_pack(check_string(layout, 1, 'pack'), {...})))
end

struct.unpack = function(layout, text, from)
    layout, text = check_string(layout, 1, 'unpack'), check_string(text, 2, 'unpack')
    from = check_whole(from or 1, 3, 'unpack')
    if from < 1 then bad_argument(3, 'unpack', 'offset must be 1 or greater') end
    local fine, found = native.struct_unpack(layout, text, from - 1)
    if not fine then error(found, 2) end
    found[found.n + 1] = found.at
    return unpack(found, 1, found.n + 1)
end

struct.size = function(layout)
    return (finish(native.struct_size(check_string(layout, 1, 'size'))))
end

