-- What scripts see -------------------------------------------------------------------------------

local api = {
    string = string, table = table, math = math, coroutine = coroutine, bit = bit, cjson = cjson,
    cmsgpack = cmsgpack, struct = struct, redis = redis,
}
cjson.new = function() return originals.cjson end
for name, own in next, api do
    for _, value in next, own do
        if type(value) == 'function' then own_functions[value] = true end
    end
    originals[name] = frozen(own)
end
for _, value in next, originals do
    if type(value) == 'function' then own_functions[value] = true end
end
own_functions[library_redis.register_function] = true
for _, value in next, script_functions do own_functions[value] = true end
originals._G = globals
setmetatable(originals, {__index = missing})
setmetatable(globals, {__index = originals, __newindex = readonly})
behind[globals], behind[function_globals] = originals, originals

-- An error, with the place in the script where it was raised.
local function located(why)
    if type(why) ~= 'table' then
        why = {err = 'ERR ' .. tostring(why)}
    end
    local source, line = native.location()
    return {err = rawget(why, 'err'), source = source, line = line}
end

local function begin()
    reset_json()
    depth = 0
end

local entry = {globals = globals, function_globals = function_globals}

-- Runs a script; whether it was fine, and what it gives.
entry.run_script = function(f, keys, args)
    begin()
    for name, value in next, script_functions do rawset(redis, name, value) end
    rawset(originals, 'KEYS', keys)
    rawset(originals, 'ARGV', args)
    runs = true
    local fine, value = xpcall(f, located)
    runs = false
    for name in next, script_functions do rawset(redis, name, nil) end
    rawset(originals, 'KEYS', nil)
    rawset(originals, 'ARGV', nil)
    return fine, value
end

-- Runs a function of a library.
entry.run_function = function(f, keys, args)
    begin()
    runs = true
    local fine, value = xpcall(function() return f(keys, args) end, located)
    runs = false
    return fine, value
end

-- Runs the code of a library, which registers its functions.
entry.load_library = function(f)
    begin()
    rawset(function_globals_metatable, '__index', library_globals)
    local fine, value = xpcall(f, located)
    rawset(function_globals_metatable, '__index', originals)
    return fine, value
end

return entry
